#include "cli/serve_budget.h"

#include <fmt/core.h>

#include "cli/answer.h"
#include "cli/serve_budget_options.h"
#include "engines/budget/rules.h"
#include "report/budget_report.h"

namespace ullage::cli {
namespace {

namespace budget = engines::budget;
using budget::Engine;
using report::Text;

Expected<void> check_generates(const model::Architecture& architecture, Engine engine) {
  const bool text = architecture.input == model::InputKind::tokens && !architecture.is_module_tree();
  const bool decodes_alone = architecture.encoder_layers == 0 || architecture.vision;
  if (text && decodes_alone && architecture.layer_count() > 0) return {};
  return fail(ErrorCode::unsupported, architecture.name,
              fmt::format("a model of this kind ({}) under {} is not in this version", architecture.family,
                          budget::title_of(engine)));
}

// Whose cards an engine runs on, by its own documents.
Expected<void> check_card(const hardware::Gpu* card, Engine engine) {
  if (card == nullptr || card->id == "unnamed") return {};
  const bool nvidia = card->vendor == "NVIDIA";
  const bool ascend = card->vendor == "Huawei";
  const bool amd = card->vendor == "AMD";
  bool runs = false;
  switch (engine) {
    case Engine::tensorrt_llm: runs = nvidia; break;
    case Engine::mindie: runs = ascend; break;
    case Engine::lmdeploy: runs = nvidia || ascend; break;
    case Engine::tgi: runs = nvidia || amd; break;
  }
  if (runs) return {};
  return fail(ErrorCode::invalid_argument, "--gpu",
              fmt::format("{} does not run on {}; name a card of {}", budget::title_of(engine), card->name,
                          engine == Engine::mindie ? "Huawei (Ascend)" : "NVIDIA"));
}

Expected<std::int64_t> gpu_count(const ChosenDevice& device, const budget::Options& options) {
  if (device.named_count && *device.named_count < options.gpus()) {
    return fail(ErrorCode::invalid_argument, "--gpus",
                fmt::format("{} are fewer than the {} that the layout takes", *device.named_count, options.gpus()));
  }
  return device.named_count.value_or(options.gpus());
}

void add_warnings(report::Prediction& out, const LoadedModel& loaded, const budget::Options& options,
                  std::int64_t gpus) {
  if (options.version > budget::newest(options.engine)) {
    out.warnings.push_back({Text::warn_engine_newer,
                            {{"engine", std::string(budget::title_of(options.engine))},
                             {"version", budget::to_string(options.version)},
                             {"known", budget::to_string(budget::newest(options.engine))}}});
  }
  if (gpus > options.gpus())
    out.warnings.push_back({Text::warn_budget_gpus_unused, {{"unused", gpus - options.gpus()}, {"count", gpus}}});
  for (const report::Message& warning : loaded.warnings) {
    if (warning.key != Text::warn_quantised) out.warnings.push_back(warning);
  }
}

}  // namespace

Expected<report::Prediction> answer_budget(const Arguments& arguments, const Files& files) {
  if (arguments.has("--html")) return not_in_this_version("--html", "a page about this engine");
  const Engine engine = *budget::engine_named(arguments.text("--engine"));
  auto loaded = load_model(arguments.positionals().front(), arguments.all("--set"), files, Extent::outline);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  if (auto checked = check_generates(loaded->architecture, engine); !checked)
    return tl::unexpected<Error>(checked.error());
  auto device = choose_equal_devices(arguments, files);
  if (!device) return tl::unexpected<Error>(device.error());
  const hardware::Gpu* card = device->gpu ? &*device->gpu : nullptr;
  if (auto runs = check_card(card, engine); !runs) return tl::unexpected<Error>(runs.error());
  const auto options = budget_options(arguments, *loaded, card);
  if (!options) return tl::unexpected<Error>(options.error());
  const auto quantisation = budget_quantisation(arguments, *loaded);
  if (!quantisation) return tl::unexpected<Error>(quantisation.error());
  const auto workload = budget_workload(arguments, *options);
  if (!workload) return tl::unexpected<Error>(workload.error());
  const auto gpus = gpu_count(*device, *options);
  if (!gpus) return tl::unexpected<Error>(gpus.error());
  const auto account = budget::account(loaded->architecture, *options, card, device->used_bytes,
                                       *quantisation ? &**quantisation : nullptr);
  if (!account) return tl::unexpected<Error>(account.error());
  report::Prediction out =
      report::budget_report({loaded->architecture, *options, *account, card, *quantisation ? &**quantisation : nullptr,
                             *workload ? &**workload : nullptr});
  out.setup = budget_settings(arguments, *options, *gpus);
  std::vector<report::Message> of_engine = std::move(out.assumptions);
  out.assumptions = budget_defaults(arguments, *options);
  append(out.assumptions, loaded->assumptions);
  append(out.assumptions, std::move(device->assumptions));
  append(out.assumptions, std::move(of_engine));
  add_warnings(out, *loaded, *options, *gpus);
  return out;
}

}  // namespace ullage::cli
