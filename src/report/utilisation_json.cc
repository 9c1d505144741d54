#include "base/json.h"
#include "report/json_parts.h"
#include "report/utilisation.h"

namespace ullage::report {
namespace {

constexpr double kTera = 1e12;

Json tera_or_null(const std::optional<double>& flops) { return flops ? Json(*flops / kTera) : Json(nullptr); }

std::string_view name_of(speed::Rerun rerun) {
  if (rerun == speed::Rerun::nothing) return "none";
  return rerun == speed::Rerun::attention ? "selective" : "full";
}

Json rules_json(const Utilisation& u) {
  Json out = Json::array();
  const std::optional<double> tokens = tokens_per_second_per_gpu(u);
  for (const WorkRule& rule : u.rules) {
    out.push_back({{"name", rule.name},
                   {"formula", render(rule.formula)},
                   {"flops_per_token", rule.flops.model},
                   {"hardware_flops_per_token", rule.flops.hardware},
                   {"tflops_per_gpu", tokens ? Json(*tokens * rule.flops.model / kTera) : Json(nullptr)},
                   {"mfu", or_null(mfu_of(u, &rule))},
                   {"hfu", or_null(hfu_of(u, &rule))},
                   {"source", rule.source}});
  }
  return out;
}

Json reference_json(const Utilisation& u) {
  const std::optional<double> tokens = tokens_per_second_per_gpu(u);
  if (!u.reference || !tokens) return nullptr;
  return {{"name", u.reference->name},
          {"tokens_per_second_per_gpu", u.reference->tokens_per_second_per_gpu},
          {"ratio", *tokens / u.reference->tokens_per_second_per_gpu},
          {"source", u.reference->source}};
}

}  // namespace

std::string utilisation_json(const Utilisation& u) {
  Json out = {{"schema", "ullage.mfu/1"}, {"command", "mfu"}};
  out["model"] =
      u.model.empty()
          ? Json(nullptr)
          : Json{{"name", u.model}, {"parameters", u.parameters}, {"active_parameters", u.active_parameters}};
  out["device"] = {{"name", u.gpu},
                   {"count", u.gpus},
                   {"precision", u.precision},
                   {"peak_tflops", tera_or_null(u.peak_flops)},
                   {"peak_formula", u.peak_formula ? Json(render(*u.peak_formula)) : Json(nullptr)}};
  out["measured"] = {{"tflops_per_gpu", tera_or_null(u.flops)},
                     {"examples_per_second", or_null(u.examples_per_second)},
                     {"tokens_per_second", or_null(u.tokens_per_second)},
                     {"tokens_per_second_per_gpu", or_null(tokens_per_second_per_gpu(u))},
                     {"seq_len", or_null(u.seq_len)},
                     {"recompute", name_of(u.rerun)}};
  out["mfu"] = or_null(mfu_of(u, main_rule(u)));
  out["hfu"] = or_null(hfu_of(u, main_rule(u)));
  out["rules"] = rules_json(u);
  out["reference"] = reference_json(u);
  out["assumptions"] = messages_json(u.assumptions);
  out["warnings"] = messages_json(u.warnings);
  return printed(out);
}

}  // namespace ullage::report
