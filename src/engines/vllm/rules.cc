#include "engines/vllm/rules.h"

#include "data/engines_vllm.h"

namespace ullage::engines::vllm {

Rule rule(std::string_view item, const Surroundings& around) {
  return parse_rule(data::engines_vllm(), item, around).value_or(Rule{});
}

double figure(std::string_view item, const Surroundings& around) { return rule(item, around).at(around.bound); }

std::vector<Rule> rules() { return parse_rules(data::engines_vllm()).value_or(std::vector<Rule>{}); }

}  // namespace ullage::engines::vllm
