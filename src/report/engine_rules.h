// What is known of serving engines, rule by rule, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "engines/vllm/rules.h"
#include "report/text_style.h"

namespace ullage::report {

std::string engine_rules_json(const std::vector<engines::vllm::Rule>& rules);
std::string engine_rules_text(const std::vector<engines::vllm::Rule>& rules, const TextStyle& style);

}  // namespace ullage::report
