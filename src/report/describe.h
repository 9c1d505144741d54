// Names of components, phases and moments as people read them and as JSON writes them.
#pragma once

#include "report/prediction.h"

namespace ullage::report {

Text text_of(memory::Component component);

// "after_forward" and its kin; texts know them all, anything else is a fault of ours.
Text text_of_phase(std::string_view name);

// "backward: layers.12.mlp.down_proj mm", "optimizer.step: sqrt", "before_step".
std::string machine_name(const Moment& moment);
Message describe(const Moment& moment);

}  // namespace ullage::report
