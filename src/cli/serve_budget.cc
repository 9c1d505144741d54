#include "cli/serve_budget.h"

#include <fmt/core.h>

#include "cli/serve_budget_options.h"
#include "cli/serve_checks.h"
#include "engines/budget/rules.h"
#include "report/budget_report.h"

namespace ullage::cli {
namespace {

namespace budget = engines::budget;
using budget::Engine;
using report::Text;

// Whose cards an engine runs on, by its own documents.
Expected<void> check_vendor(const hardware::Gpu* card, Engine engine) {
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

}  // namespace

Expected<report::Prediction> answer_budget(const Arguments& arguments, const Files& files) {
  const Engine engine = *budget::engine_named(arguments.text("--engine"));
  const auto served = load_served(arguments, files, budget::title_of(engine),
                                  [&](const hardware::Gpu* card) { return check_vendor(card, engine); });
  if (!served) return tl::unexpected<Error>(served.error());
  const LoadedModel& loaded = served->loaded;
  const auto options = budget_options(arguments, loaded, served->card());
  if (!options) return tl::unexpected<Error>(options.error());
  const auto quantisation = budget_quantisation(arguments, loaded);
  if (!quantisation) return tl::unexpected<Error>(quantisation.error());
  const model::Quantisation* stored = *quantisation ? &**quantisation : nullptr;
  const auto workload = budget_workload(arguments, *options);
  if (!workload) return tl::unexpected<Error>(workload.error());
  const auto gpus = gpu_count(served->device, options->gpus());
  if (!gpus) return tl::unexpected<Error>(gpus.error());
  const auto account =
      budget::account(loaded.architecture, *options, served->card(), served->device.used_bytes, stored);
  if (!account) return tl::unexpected<Error>(account.error());
  report::Prediction out = report::budget_report(
      {loaded.architecture, *options, *account, served->card(), stored, *workload ? &**workload : nullptr});
  out.setup = budget_settings(arguments, *options, *gpus);
  if (options->version > budget::newest(engine))
    out.warnings.push_back(newer_than_rules(budget::title_of(engine), options->version, budget::newest(engine)));
  tell_served(out, budget_defaults(arguments, *options), *served, *gpus - options->gpus(), *gpus,
              Text::warn_budget_gpus_unused);
  return out;
}

}  // namespace ullage::cli
