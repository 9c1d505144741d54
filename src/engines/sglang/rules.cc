#include "engines/sglang/rules.h"

#include "data/engines_sglang.h"

namespace ullage::engines::sglang {

Rule rule(std::string_view item, const Surroundings& around) {
  return serving::parse_rule(data::engines_sglang(), item, around).value_or(Rule{});
}

double figure(std::string_view item, const Surroundings& around) { return rule(item, around).at(around.bound); }

std::int64_t count(std::string_view item, const Surroundings& around) {
  return static_cast<std::int64_t>(figure(item, around));
}

std::vector<Rule> rules() { return serving::parse_rules(data::engines_sglang()).value_or(std::vector<Rule>{}); }

}  // namespace ullage::engines::sglang
