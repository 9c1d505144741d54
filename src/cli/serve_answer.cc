#include "cli/serve_answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "cli/answer.h"
#include "cli/model_source.h"
#include "engines/transformers/split.h"
#include "hardware/process_memory.h"
#include "report/serve_cards.h"
#include "report/serve_report.h"

namespace ullage::cli {
namespace {

namespace hf = engines::transformers;

Expected<void> check_cards(const ServeSetup& setup, const ChosenDevices& devices) {
  if (setup.options.weights != model::BaseFormat::int8) return {};
  for (const hardware::Gpu& gpu : devices.gpus) {
    if (!gpu.compute_capability || *gpu.compute_capability >= hardware::kInt8WeightsSince) continue;
    return fail(ErrorCode::unsupported, "--quantization",
                fmt::format("bitsandbytes multiplies in int8 from compute capability {} on, and {} has {}; use nf4",
                            hardware::to_string(hardware::kInt8WeightsSince), gpu.name,
                            hardware::to_string(*gpu.compute_capability)));
  }
  return {};
}

void put_setting(std::vector<report::Setting>& settings, const std::string& name,
                 std::variant<std::int64_t, double, bool, std::string> value) {
  const auto at = std::find_if(settings.begin(), settings.end(), [&](const auto& one) { return one.name == name; });
  if (at == settings.end()) settings.push_back({name, std::move(value)});
  else at->value = std::move(value);
}

// transformers dequantises fp8 to bf16 where the card does not multiply it.
void dequantise_for(const ChosenDevices& devices, ServeSetup& setup) {
  if (setup.options.weights != model::BaseFormat::fp8) return;
  for (const hardware::Gpu& gpu : devices.gpus) {
    if (!gpu.compute_capability || *gpu.compute_capability >= hardware::kFp8Since) continue;
    setup.options.weights = model::BaseFormat::plain;
    put_setting(setup.settings, "quantization", std::string("none"));
    setup.warnings.push_back({report::Text::warn_fp8_dequantised,
                              {{"gpu", gpu.name}, {"capability", hardware::to_string(*gpu.compute_capability)}}});
    return;
  }
}

Expected<void> check_flash(const ServeSetup& setup, const ChosenDevices& devices) {
  if (setup.options.attention != engines::pytorch::AttentionImpl::flash) return {};
  for (const hardware::Gpu& gpu : devices.gpus) {
    if (!gpu.compute_capability || *gpu.compute_capability >= hardware::kFlashAttention2Since) continue;
    return fail(ErrorCode::unsupported, "--attention",
                fmt::format("flash attention 2 runs from compute capability {} on, and {} has {}; use sdpa",
                            hardware::to_string(hardware::kFlashAttention2Since), gpu.name,
                            hardware::to_string(*gpu.compute_capability)));
  }
  return {};
}

const hardware::Gpu* card(const ChosenDevices& devices, std::size_t i) {
  return devices.gpus.empty() ? nullptr : &devices.gpus[i];
}

// What the driver shows as free on each once its context is made; a card without limit is large enough.
std::vector<std::int64_t> free_bytes(const ChosenDevices& devices) {
  constexpr std::int64_t kWithoutLimit = std::numeric_limits<std::int64_t>::max() / 4;
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < devices.count; ++i) {
    const hardware::Gpu* gpu = card(devices, static_cast<std::size_t>(i));
    const std::int64_t context = hardware::process_memory(gpu).context.bytes;
    out.push_back(gpu == nullptr ? kWithoutLimit : std::max<std::int64_t>(0, gpu->usable_bytes - context));
  }
  return out;
}

void add_workspace(hf::ServeRun& served, const ServeSetup& setup, const hardware::Gpu* gpu) {
  if (setup.options.kernels == engines::pytorch::Kernels::cuda)
    hf::add_workspace(served, hardware::process_memory(gpu).cublas_workspace_bytes);
}

struct Served {
  report::Prediction prediction;
  std::vector<hf::ServeRun> runs;
};

Expected<Served> serve_on_one(const LoadedModel& loaded, const ServeSetup& setup, const ChosenDevices& devices) {
  auto served = hf::run_generation(loaded.architecture, setup.options);
  if (!served) return tl::unexpected<Error>(served.error());
  const hardware::Gpu* gpu = card(devices, 0);
  add_workspace(*served, setup, gpu);
  Served out;
  out.prediction = report::serve_report(
      report::ServeQuestion{loaded.architecture, setup.options, *served, gpu, setup.allocator, devices.used_bytes});
  out.runs.push_back(*std::move(served));
  return out;
}

Expected<Served> serve_on_cards(const LoadedModel& loaded, const ServeSetup& setup, const ChosenDevices& devices,
                                const std::string& map) {
  const auto served = hf::run_generation(loaded.architecture, setup.options);
  if (!served) return tl::unexpected<Error>(served.error());
  const auto plan = hf::plan_weights(loaded.architecture, setup.options);
  if (!plan) return tl::unexpected<Error>(plan.error());
  const std::vector<std::int64_t> free = free_bytes(devices);
  const hf::Placement placement = hf::place(loaded.architecture, *plan, setup.options, setup.device_map, free);
  Served out;
  out.runs = hf::split_over_cards(*served, loaded.architecture, setup.options, placement, free.size());
  for (std::size_t i = 0; i < out.runs.size(); ++i) add_workspace(out.runs[i], setup, card(devices, i));
  out.prediction = report::serve_report(report::CardsQuestion{
      loaded.architecture, setup.options, out.runs, devices.gpus, placement, setup.allocator, devices.used_bytes});
  if (!devices.gpus.empty())
    out.prediction.assumptions.push_back(
        {report::Text::assume_device_map, {{"map", map}, {"count", devices.count}, {"free", report::Bytes{free[0]}}}});
  if (const std::int64_t left = placement.left_to_processor(); left > 0)
    out.prediction.warnings.push_back({report::Text::warn_left_to_processor, {{"count", left}}});
  return out;
}

Expected<ServeAnswer> answer(LoadedModel loaded, ServeSetup setup, ChosenDevices devices, const Arguments& arguments) {
  if (auto checked = check_cards(setup, devices); !checked) return tl::unexpected<Error>(checked.error());
  if (auto checked = check_flash(setup, devices); !checked) return tl::unexpected<Error>(checked.error());
  dequantise_for(devices, setup);
  if (!devices.gpus.empty()) setup.options.card = capability_of(devices.gpus.front());
  const bool mapped = devices.count > 1 || arguments.has("--device-map");
  const std::string map = arguments.text("--device-map", "auto");
  auto served = mapped ? serve_on_cards(loaded, setup, devices, map) : serve_on_one(loaded, setup, devices);
  if (!served) return tl::unexpected<Error>(served.error());
  report::Prediction out = std::move(served->prediction);
  put_setting(setup.settings, "gpus", devices.count);
  if (mapped) put_setting(setup.settings, "device_map", map);
  out.setup = std::move(setup.settings);
  // What the configuration says of its weights is answered by --quantization.
  std::erase_if(loaded.warnings, [](const report::Message& m) { return m.key == report::Text::warn_quantised; });
  tell(out, {std::move(setup.assumptions), std::move(setup.warnings)}, loaded, std::move(devices.assumptions));
  const std::size_t worst = out.worst_rank;
  return ServeAnswer{std::move(out), std::move(served->runs[worst]), setup.allocator};
}

}  // namespace

Expected<ServeAnswer> answer_serving(const Arguments& arguments, const LoadedModel& loaded, const Files& files) {
  auto setup = resolve_serve_options(arguments, loaded);
  if (!setup) return tl::unexpected<Error>(setup.error());
  auto devices = choose_devices(arguments, files);
  if (!devices) return tl::unexpected<Error>(devices.error());
  if (auto checked = check_interconnect(arguments, devices->gpus); !checked)
    return tl::unexpected<Error>(checked.error());
  return answer(loaded, *std::move(setup), *std::move(devices), arguments);
}

Expected<ServeAnswer> answer_serving(const Arguments& arguments, const Files& files) {
  if (auto checked = check_require_fit(arguments); !checked) return tl::unexpected<Error>(checked.error());
  auto loaded = load_model(arguments.positionals().front(), arguments.all("--set"), files);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  return answer_serving(arguments, *loaded, files);
}

}  // namespace ullage::cli
