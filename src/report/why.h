// Where the bytes of a component come from: the rule, the numbers put in, the source of the rule.
#pragma once

#include <span>

#include "report/part_names.h"
#include "report/train_report.h"

namespace ullage::report {

// `groups` are those of the whole moment; the values put into the rule give exactly `bytes`.
Why why_of(const TrainQuestion& question, memory::Component component, std::int64_t bytes,
           std::span<const Group> groups);

}  // namespace ullage::report
