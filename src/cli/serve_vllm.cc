#include "cli/serve_vllm.h"

#include <algorithm>

#include "base/lines.h"
#include "cli/answer.h"
#include "cli/serve_checks.h"
#include "cli/serve_vllm_options.h"
#include "engines/vllm/budget.h"
#include "engines/vllm/checks.h"
#include "report/vllm_report.h"

namespace ullage::cli {
namespace {

namespace vllm = engines::vllm;
using report::Text;

constexpr std::string_view kEngine = "vLLM";
// Source: docs.vllm.ai, Installation, requirements of CUDA.
constexpr hardware::ComputeCapability kLeast{7, 0};

// Everything that the answer is made of.
struct Asked {
  LoadedModel loaded;
  ChosenDevice device;
  vllm::Resolved resolved;
  std::optional<model::Quantisation> quantisation;
  std::vector<report::Message> found;  // what a search found

  const hardware::Gpu* card() const { return device.gpu ? &*device.gpu : nullptr; }
  Expected<vllm::Budget> start(const vllm::Options& options) const {
    return vllm::start(loaded.architecture, options, card(), device.used_bytes,
                       quantisation ? &*quantisation : nullptr);
  }
};

// The longest request with which it starts, in place of `max`.
Expected<void> search_length(Asked& asked) {
  vllm::Options& options = asked.resolved.options;
  std::int64_t starts = 0;
  std::int64_t refuses = options.max_model_len + 1;
  while (refuses - starts > 1) {
    // The model's own limit first: often it starts with that.
    const std::int64_t length =
        refuses > options.max_model_len && starts == 0 ? options.max_model_len : starts + (refuses - starts) / 2;
    vllm::Options tried = options;
    tried.max_model_len = length;
    const auto budget = asked.start(tried);
    if (!budget) return tl::unexpected<Error>(budget.error());
    const bool holds = budget->middle.outcome == vllm::Outcome::starts;
    (holds ? starts : refuses) = length;
  }
  if (starts == 0) return {};
  const bool limited = starts < options.max_model_len;
  options.max_model_len = starts;
  asked.found.push_back({limited ? Text::assume_largest : Text::assume_largest_allowed,
                         {{"option", std::string("--max-model-len")}, {"value", starts}, {"next", starts + 1}}});
  return {};
}

// A name that says how its weights are quantised.
bool says_quantised(const std::string& name) {
  for (const std::string_view word :
       {"nvfp4", "mxfp4", "-fp4", "fp8", "awq", "gptq", "int4", "int8", "w4a16", "w8a8", "w8a16", "4bit", "8bit"}) {
    if (contains_ignoring_case(name, word)) return true;
  }
  return false;
}

void add_warnings(report::Prediction& out, const Asked& asked, std::int64_t gpus) {
  const vllm::Options& options = asked.resolved.options;
  if (asked.resolved.newer_than_known || asked.resolved.older_than_known) {
    const bool newer = asked.resolved.newer_than_known;
    out.warnings.push_back({newer ? Text::warn_engine_newer : Text::warn_engine_older,
                            {{"engine", std::string("vLLM")},
                             {"version", vllm::to_string(options.release)},
                             {"known", vllm::to_string(newer ? vllm::kNewest : vllm::kOldest)}}});
  }
  for (const auto& [flag, other] : asked.resolved.idle_flags)
    out.warnings.push_back({Text::warn_flag_alone, {{"option", flag}, {"other", other}}});
  if (!asked.quantisation && says_quantised(asked.loaded.architecture.name)) {
    out.warnings.push_back(
        {Text::warn_quantisation_unsaid,
         {{"name", asked.loaded.architecture.name}, {"dtype", std::string(name_of(options.dtype))}}});
  }
  const hardware::Gpu* card = asked.card();
  if (card != nullptr && !card->vendor.empty() && card->vendor != "NVIDIA" && card->id != "unnamed")
    out.warnings.push_back({Text::warn_engine_vendor, {{"gpu", card->name}}});
  if (gpus > options.gpus())
    out.warnings.push_back({Text::warn_gpus_unused, {{"unused", gpus - options.gpus()}, {"count", gpus}}});
  for (const std::string& name : asked.resolved.ignored_env)
    out.warnings.push_back({Text::warn_env_ignored, {{"name", name}}});
  if (options.encodes_images) out.warnings.push_back({Text::warn_images_not_profiled, {}});
  for (const report::Message& warning : asked.loaded.warnings) {
    // Said of training, and not so here: the weights are counted as they are stored.
    if (warning.key != Text::warn_quantised) out.warnings.push_back(warning);
  }
}

Expected<report::Prediction> report_of(const Arguments& arguments, Asked asked) {
  const vllm::Options& options = asked.resolved.options;
  const auto gpus = gpu_count(asked.device, options.gpus());
  if (!gpus) return tl::unexpected<Error>(gpus.error());
  const auto budget = asked.start(options);
  if (!budget) return tl::unexpected<Error>(budget.error());
  const auto workload = serving_workload(arguments, options.max_model_len, "--max-model-len");
  if (!workload) return tl::unexpected<Error>(workload.error());
  report::Prediction out = report::vllm_report({asked.loaded.architecture, options, *budget, asked.card(),
                                                asked.quantisation ? &*asked.quantisation : nullptr,
                                                *workload ? &**workload : nullptr, asked.device.used_bytes});
  out.setup = vllm_settings(arguments, options, *gpus);
  std::vector<report::Message> of_engine = std::move(out.assumptions);
  out.assumptions = vllm_defaults(arguments, options);
  append(out.assumptions, std::move(asked.found));
  append(out.assumptions, asked.loaded.assumptions);
  append(out.assumptions, std::move(asked.device.assumptions));
  append(out.assumptions, std::move(of_engine));
  add_warnings(out, asked, *gpus);
  return out;
}

}  // namespace

Expected<report::Prediction> answer_vllm(const Arguments& arguments, const Files& files) {
  if (arguments.has("--html")) return not_in_this_version("--html", "a page about vLLM");
  const auto flags = vllm_flags(arguments);
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
  auto resolved = vllm::resolve(*flags, {loaded->architecture, loaded->config, card});
  if (!resolved) return tl::unexpected<Error>(resolved.error());
  auto quantisation = serving_quantisation(arguments, *loaded, vllm_scales(resolved->options), kEngine);
  if (!quantisation) return tl::unexpected<Error>(quantisation.error());
  if (*quantisation) {
    const auto whole = vllm::check_blocks(loaded->architecture, resolved->options, **quantisation);
    if (!whole) return tl::unexpected<Error>(whole.error());
  }
  Asked asked{*std::move(loaded), *std::move(device), *std::move(resolved), *std::move(quantisation), {}};
  if (arguments.text("--max-model-len") == "max") {
    if (auto found = search_length(asked); !found) return tl::unexpected<Error>(found.error());
  }
  return report_of(arguments, std::move(asked));
}

}  // namespace ullage::cli
