#include "cli/serve_sglang.h"

#include "cli/serve_checks.h"
#include "cli/serve_sglang_options.h"
#include "report/sglang_report.h"

namespace ullage::cli {
namespace {

namespace sglang = engines::sglang;
using report::Text;

constexpr std::string_view kEngine = "SGLang";
// Source: docs.sglang.ai, Install SGLang: sm75 and above.
constexpr hardware::ComputeCapability kLeast{7, 5};

// Everything that the answer is made of.
struct Asked {
  Served served;
  sglang::Resolved resolved;
  std::optional<model::Quantisation> quantisation;

  const hardware::Gpu* card() const { return served.card(); }
  const model::Quantisation* stored() const { return quantisation ? &*quantisation : nullptr; }
};

void add_warnings(report::Prediction& out, const Asked& asked) {
  const sglang::Options& options = asked.resolved.options;
  if (asked.resolved.newer_than_known)
    out.warnings.push_back(newer_than_rules(kEngine, options.version, sglang::kNewest));
  const hardware::Gpu* card = asked.card();
  if (card != nullptr && !card->vendor.empty() && card->vendor != "NVIDIA" && card->id != "unnamed")
    out.warnings.push_back({Text::warn_engine_vendor, {{"gpu", card->name}}});
}

Expected<report::Prediction> report_of(const Arguments& arguments, Asked asked) {
  const sglang::Options& options = asked.resolved.options;
  const auto gpus = gpu_count(asked.served.device, options.gpus());
  if (!gpus) return tl::unexpected<Error>(gpus.error());
  const auto budget = sglang::start(asked.served.loaded.architecture, options, asked.card(),
                                    asked.served.device.used_bytes, asked.stored());
  if (!budget) return tl::unexpected<Error>(budget.error());
  const auto workload = serving_workload(arguments, options.context_length, "--context-length");
  if (!workload) return tl::unexpected<Error>(workload.error());
  report::Prediction out = report::sglang_report(
      {asked.served.loaded.architecture, options, *budget, asked.card(), asked.stored(),
       *workload ? &**workload : nullptr, asked.served.device.used_bytes, !arguments.has("--mem-fraction-static")});
  out.setup = sglang_settings(arguments, options, *budget, *gpus);
  add_warnings(out, asked);
  tell_served(out, sglang_defaults(arguments, options), asked.served, *gpus - options.gpus(), *gpus);
  return out;
}

}  // namespace

Expected<report::Prediction> answer_sglang(const Arguments& arguments, const Files& files) {
  const auto flags = sglang_flags(arguments);
  if (!flags) return tl::unexpected<Error>(flags.error());
  auto served = load_served(arguments, files, kEngine,
                            [](const hardware::Gpu* card) { return check_card(card, kEngine, kLeast); });
  if (!served) return tl::unexpected<Error>(served.error());
  auto resolved = sglang::resolve(*flags, {served->loaded.architecture, served->loaded.config, served->card()});
  if (!resolved) return tl::unexpected<Error>(resolved.error());
  auto quantisation = serving_quantisation(arguments, served->loaded, ScalesOfNf4::as_stored, kEngine);
  if (!quantisation) return tl::unexpected<Error>(quantisation.error());
  return report_of(arguments, {*std::move(served), *std::move(resolved), *std::move(quantisation)});
}

}  // namespace ullage::cli
