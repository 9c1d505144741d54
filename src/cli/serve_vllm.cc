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
  Served served;
  vllm::Resolved resolved;
  std::optional<model::Quantisation> quantisation;
  std::vector<report::Message> found;  // what a search found

  const hardware::Gpu* card() const { return served.card(); }
  Expected<vllm::Budget> start(const vllm::Options& options) const {
    return vllm::start(served.loaded.architecture, options, card(), served.device.used_bytes,
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

void add_warnings(report::Prediction& out, const Asked& asked) {
  const vllm::Options& options = asked.resolved.options;
  if (asked.resolved.newer_than_known)
    out.warnings.push_back(newer_than_rules(kEngine, options.release, vllm::kNewest));
  if (asked.resolved.older_than_known)
    out.warnings.push_back(older_than_rules(kEngine, options.release, vllm::kOldest));
  for (const auto& [flag, other] : asked.resolved.idle_flags)
    out.warnings.push_back({Text::warn_flag_alone, {{"option", flag}, {"other", other}}});
  if (!asked.quantisation && says_quantised(asked.served.loaded.architecture.name)) {
    out.warnings.push_back(
        {Text::warn_quantisation_unsaid,
         {{"name", asked.served.loaded.architecture.name}, {"dtype", std::string(name_of(options.dtype))}}});
  }
  const hardware::Gpu* card = asked.card();
  if (card != nullptr && !card->vendor.empty() && card->vendor != "NVIDIA" && card->id != "unnamed")
    out.warnings.push_back({Text::warn_engine_vendor, {{"gpu", card->name}}});
  for (const std::string& name : asked.resolved.ignored_env)
    out.warnings.push_back({Text::warn_env_ignored, {{"name", name}}});
  if (options.encodes_images) out.warnings.push_back({Text::warn_images_not_profiled, {}});
}

Expected<report::Prediction> report_of(const Arguments& arguments, Asked asked) {
  const vllm::Options& options = asked.resolved.options;
  const auto gpus = gpu_count(asked.served.device, options.gpus());
  if (!gpus) return tl::unexpected<Error>(gpus.error());
  const auto budget = asked.start(options);
  if (!budget) return tl::unexpected<Error>(budget.error());
  const auto workload = serving_workload(arguments, options.max_model_len, "--max-model-len");
  if (!workload) return tl::unexpected<Error>(workload.error());
  report::Prediction out = report::vllm_report({asked.served.loaded.architecture, options, *budget, asked.card(),
                                                asked.quantisation ? &*asked.quantisation : nullptr,
                                                *workload ? &**workload : nullptr, asked.served.device.used_bytes});
  out.setup = vllm_settings(arguments, options, *gpus);
  std::vector<report::Message> resolved = vllm_defaults(arguments, options);
  append(resolved, std::move(asked.found));
  add_warnings(out, asked);
  tell_served(out, std::move(resolved), asked.served, *gpus - options.gpus(), *gpus);
  return out;
}

}  // namespace

Expected<report::Prediction> answer_vllm(const Arguments& arguments, const Files& files) {
  const auto flags = vllm_flags(arguments);
  if (!flags) return tl::unexpected<Error>(flags.error());
  auto served = load_served(arguments, files, kEngine,
                            [](const hardware::Gpu* card) { return check_card(card, kEngine, kLeast); });
  if (!served) return tl::unexpected<Error>(served.error());
  const LoadedModel& loaded = served->loaded;
  auto resolved = vllm::resolve(*flags, {loaded.architecture, loaded.config, served->card()});
  if (!resolved) return tl::unexpected<Error>(resolved.error());
  auto quantisation = serving_quantisation(arguments, loaded, vllm_scales(resolved->options), kEngine);
  if (!quantisation) return tl::unexpected<Error>(quantisation.error());
  if (*quantisation) {
    const auto whole = vllm::check_blocks(loaded.architecture, resolved->options, **quantisation);
    if (!whole) return tl::unexpected<Error>(whole.error());
  }
  Asked asked{*std::move(served), *std::move(resolved), *std::move(quantisation), {}};
  if (arguments.text("--max-model-len") == "max") {
    if (auto found = search_length(asked); !found) return tl::unexpected<Error>(found.error());
  }
  return report_of(arguments, std::move(asked));
}

}  // namespace ullage::cli
