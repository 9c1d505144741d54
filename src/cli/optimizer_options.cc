#include "cli/optimizer_options.h"

#include <fmt/core.h>

namespace ullage::cli {
namespace {

using engines::pytorch::Optimizer;
using engines::pytorch::OptimizerImpl;

constexpr std::pair<std::string_view, Optimizer> kOptimizers[] = {
    {"adamw", Optimizer::adamw},
    {"adam", Optimizer::adam},
    {"sgd", Optimizer::sgd},
    {"sgd-momentum", Optimizer::sgd_momentum},
    {"adagrad", Optimizer::adagrad},
    {"rmsprop", Optimizer::rmsprop},
    {"adafactor", Optimizer::adafactor},
    {"lion", Optimizer::lion},
    {"muon", Optimizer::muon},
    {"adamw-8bit", Optimizer::adamw_8bit},
    {"paged-adamw-8bit", Optimizer::paged_adamw_8bit},
    {"adamw-4bit", Optimizer::adamw_4bit},
    {"adamw-fp8", Optimizer::adamw_fp8},
    {"none", Optimizer::none},
};

constexpr std::pair<std::string_view, OptimizerImpl> kImplementations[] = {
    {"foreach", OptimizerImpl::foreach}, {"fused", OptimizerImpl::fused}, {"loop", OptimizerImpl::loop}};

// The table has checked the name already.
template <class E, std::size_t N>
E value_of(const std::pair<std::string_view, E> (&names)[N], std::string_view name) {
  for (const auto& [known, value] : names) {
    if (known == name) return value;
  }
  return names[0].second;
}

Expected<void> check_in_backward(const Arguments& arguments) {
  if (!arguments.has("--optimizer-in-backward")) return {};
  for (const std::string_view option : {"--clip-grad", "--grad-accum", "--grad-scaler"}) {
    const bool one = option == "--grad-accum" && arguments.text(option) == "1";
    if (!arguments.has(option) || one) continue;
    return fail(ErrorCode::invalid_argument, "--optimizer-in-backward",
                fmt::format("contradicts {}, which needs all gradients; leave one out", option));
  }
  if (arguments.text("--optimizer") != "none") return {};
  return fail(ErrorCode::invalid_argument, "--optimizer-in-backward", "there is no optimizer; leave it out");
}

}  // namespace

std::string_view name_of(OptimizerImpl impl) {
  for (const auto& [name, value] : kImplementations) {
    if (value == impl) return name;
  }
  return kImplementations[0].first;
}

Expected<void> read_optimizer(const Arguments& arguments, engines::pytorch::TrainOptions& options) {
  const std::string name = arguments.text("--optimizer", "adamw");
  options.optimizer = value_of(kOptimizers, name);
  options.optimizer_impl = engines::pytorch::usual_impl(options.optimizer);
  options.optimizer_in_backward = arguments.has("--optimizer-in-backward");
  if (arguments.has("--optimizer-impl")) {
    options.optimizer_impl = value_of(kImplementations, arguments.text("--optimizer-impl"));
    if (!engines::pytorch::has_impl(options.optimizer, options.optimizer_impl)) {
      return fail(
          ErrorCode::invalid_argument, "--optimizer-impl",
          fmt::format("{} has no {} implementation; leave it out for {}", name, arguments.text("--optimizer-impl"),
                      name_of(engines::pytorch::usual_impl(options.optimizer))));
    }
  }
  return check_in_backward(arguments);
}

}  // namespace ullage::cli
