#include "cli/serve_sglang.h"

#include "cli/answer.h"
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
  LoadedModel loaded;
  ChosenDevice device;
  sglang::Resolved resolved;
  std::optional<model::Quantisation> quantisation;

  const hardware::Gpu* card() const { return device.gpu ? &*device.gpu : nullptr; }
  const model::Quantisation* stored() const { return quantisation ? &*quantisation : nullptr; }
};

void add_warnings(report::Prediction& out, const Asked& asked, std::int64_t gpus) {
  const sglang::Options& options = asked.resolved.options;
  if (asked.resolved.newer_than_known) {
    out.warnings.push_back({Text::warn_engine_newer,
                            {{"engine", std::string(kEngine)},
                             {"version", sglang::to_string(options.version)},
                             {"known", sglang::to_string(sglang::kNewest)}}});
  }
  const hardware::Gpu* card = asked.card();
  if (card != nullptr && !card->vendor.empty() && card->vendor != "NVIDIA" && card->id != "unnamed")
    out.warnings.push_back({Text::warn_engine_vendor, {{"gpu", card->name}}});
  if (gpus > options.gpus())
    out.warnings.push_back({Text::warn_gpus_unused, {{"unused", gpus - options.gpus()}, {"count", gpus}}});
  for (const report::Message& warning : asked.loaded.warnings) {
    // Said of training, and not so here: the weights are counted as they are stored.
    if (warning.key != Text::warn_quantised) out.warnings.push_back(warning);
  }
}

Expected<report::Prediction> report_of(const Arguments& arguments, Asked asked) {
  const sglang::Options& options = asked.resolved.options;
  const auto gpus = gpu_count(asked.device, options.gpus());
  if (!gpus) return tl::unexpected<Error>(gpus.error());
  const auto budget =
      sglang::start(asked.loaded.architecture, options, asked.card(), asked.device.used_bytes, asked.stored());
  if (!budget) return tl::unexpected<Error>(budget.error());
  const auto workload = serving_workload(arguments, options.context_length, "--context-length");
  if (!workload) return tl::unexpected<Error>(workload.error());
  report::Prediction out = report::sglang_report({asked.loaded.architecture, options, *budget, asked.card(),
                                                  asked.stored(), *workload ? &**workload : nullptr,
                                                  asked.device.used_bytes, !arguments.has("--mem-fraction-static")});
  out.setup = sglang_settings(arguments, options, *budget, *gpus);
  std::vector<report::Message> of_engine = std::move(out.assumptions);
  out.assumptions = sglang_defaults(arguments, options);
  append(out.assumptions, asked.loaded.assumptions);
  append(out.assumptions, std::move(asked.device.assumptions));
  append(out.assumptions, std::move(of_engine));
  add_warnings(out, asked, *gpus);
  return out;
}

}  // namespace

Expected<report::Prediction> answer_sglang(const Arguments& arguments, const Files& files) {
  if (arguments.has("--html")) return not_in_this_version("--html", "a page about SGLang");
  const auto flags = sglang_flags(arguments);
  if (!flags) return tl::unexpected<Error>(flags.error());
  auto loaded = load_model(arguments.positionals().front(), arguments.all("--set"), files, Extent::outline);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  if (auto checked = check_generates(loaded->architecture, kEngine); !checked)
    return tl::unexpected<Error>(checked.error());
  auto device = choose_equal_devices(arguments, files);
  if (!device) return tl::unexpected<Error>(device.error());
  const hardware::Gpu* card = device->gpu ? &*device->gpu : nullptr;
  const std::vector<hardware::Gpu> kinds = card == nullptr ? std::vector<hardware::Gpu>{} : std::vector{*card};
  if (auto linked = check_interconnect(arguments, kinds); !linked) return tl::unexpected<Error>(linked.error());
  if (auto runs = check_card(card, kEngine, kLeast); !runs) return tl::unexpected<Error>(runs.error());
  auto resolved = sglang::resolve(*flags, {loaded->architecture, loaded->config, card});
  if (!resolved) return tl::unexpected<Error>(resolved.error());
  auto quantisation = serving_quantisation(arguments, *loaded, ScalesOfNf4::as_stored, kEngine);
  if (!quantisation) return tl::unexpected<Error>(quantisation.error());
  return report_of(arguments, {*std::move(loaded), *std::move(device), *std::move(resolved), *std::move(quantisation)});
}

}  // namespace ullage::cli
