// What is known of serving engines, rule by rule, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "engines/serving/rules.h"
#include "report/text_style.h"

namespace ullage::report {

struct EngineRules {
  std::string name;   // "vllm", as --engine calls it
  std::string title;  // "vLLM"
  std::vector<engines::serving::Rule> rules;
};

// Engines of which nothing is left are in the JSON and not in the text.
std::string engine_rules_json(const std::vector<EngineRules>& engines);
std::string engine_rules_text(const std::vector<EngineRules>& engines, const TextStyle& style);

// "utilization-0.23 (since 0.23, documented): who says so".
std::string cite(const engines::serving::Rule& rule);

}  // namespace ullage::report
