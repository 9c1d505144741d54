// Why SGLang's components are as large as they are: the rule, the numbers put in, the source.
#pragma once

#include "memory/component.h"
#include "report/sglang_report.h"

namespace ullage::report {

Why sglang_why(const SglangQuestion& question, memory::Component component);

}  // namespace ullage::report
