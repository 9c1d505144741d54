#pragma once

#include "model/config_fields.h"
#include "model/modules.h"

namespace ullage::model {

Expected<Architecture> build_phi(const JsonObject& config);
// phi-msft: the names that the models' own code gave the fields. Run as transformers' class, for which the same weights
// were published later.
Expected<Architecture> build_phi_msft(const JsonObject& config);
Output forward_phi(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
