#include "report/utilisation.h"

namespace ullage::report {
namespace {

std::optional<double> part_of_peak(const Utilisation& u, std::optional<double> flops) {
  if (!flops || !u.peak_flops) return std::nullopt;
  return *flops / *u.peak_flops;
}

// Without a model only the run of everything is known: forward is a third of what the model asks for.
std::optional<double> hardware_flops(const Utilisation& u) {
  if (!u.flops || u.rerun == speed::Rerun::attention) return std::nullopt;
  return u.rerun == speed::Rerun::everything ? *u.flops * 4 / 3 : *u.flops;
}

std::optional<double> at_throughput(const Utilisation& u, double flops_per_token) {
  const auto tokens = tokens_per_second_per_gpu(u);
  if (!tokens) return std::nullopt;
  return *tokens * flops_per_token;
}

}  // namespace

std::optional<double> tokens_per_second_per_gpu(const Utilisation& u) {
  if (!u.tokens_per_second) return std::nullopt;
  return *u.tokens_per_second / static_cast<double>(u.gpus);
}

std::optional<double> mfu_of(const Utilisation& u, const WorkRule* rule) {
  return part_of_peak(u, rule == nullptr ? u.flops : at_throughput(u, rule->flops.model));
}

std::optional<double> hfu_of(const Utilisation& u, const WorkRule* rule) {
  return part_of_peak(u, rule == nullptr ? hardware_flops(u) : at_throughput(u, rule->flops.hardware));
}

const WorkRule* main_rule(const Utilisation& u) { return u.rules.empty() ? nullptr : &u.rules.back(); }

}  // namespace ullage::report
