#include "cli/check_corrections.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "report/glance.h"

namespace ullage::cli {
namespace {

using launch::Engine;

using Changes = std::vector<std::pair<std::string, std::string>>;

enum class Search : std::uint8_t {
  up,      // the first listed value above the present one that starts
  down,    // below it
  most,    // the largest that starts, which the prediction itself finds
  halve,   // half of it, and again
  twice,   // twice as many, and again: GPUs
  either,  // the listed value, where it is not that already
};

// A flag to turn, of an engine; in the order in which people would rather.
struct Lever {
  Engine engine;
  std::string_view flag;    // the engine's
  std::string_view option;  // of `ullage serve`
  Search search;
  std::string_view values = {};
  double least_capability = 0;  // of the card
};

constexpr Lever kLevers[] = {
    {Engine::vllm, "--gpu-memory-utilization", "--gpu-memory-utilization", Search::up, "0.92 0.95"},
    {Engine::vllm, "--gpu-memory-utilization", "--gpu-memory-utilization", Search::down, "0.9 0.88 0.85 0.8 0.75 0.7"},
    {Engine::vllm, "--max-model-len", "--max-model-len", Search::most},
    {Engine::vllm, "--max-num-seqs", "--max-num-seqs", Search::halve},
    {Engine::vllm, "--max-num-batched-tokens", "--max-num-batched-tokens", Search::down, "8192 4096 2048 1024"},
    {Engine::vllm, "--kv-cache-dtype", "--kv-cache-dtype", Search::either, "fp8", 8.9},
    {Engine::vllm, "--enforce-eager", "--enforce-eager", Search::either, ""},
    {Engine::vllm, "--tensor-parallel-size", "--tensor-parallel-size", Search::twice},
    {Engine::vllm, "--quantization", "--quantization", Search::either, "fp8", 8.9},
    {Engine::sglang, "--mem-fraction-static", "--mem-fraction-static", Search::up, "0.85 0.88 0.9 0.92 0.95"},
    {Engine::sglang, "--mem-fraction-static", "--mem-fraction-static", Search::down, "0.85 0.8 0.75 0.7"},
    {Engine::sglang, "--context-length", "--context-length", Search::halve},
    {Engine::sglang, "--max-running-requests", "--max-running-requests", Search::halve},
    {Engine::sglang, "--chunked-prefill-size", "--chunked-prefill-size", Search::down, "4096 2048 1024"},
    {Engine::sglang, "--cuda-graph-max-bs", "--cuda-graph-max-bs", Search::halve},
    {Engine::sglang, "--kv-cache-dtype", "--kv-cache-dtype", Search::either, "fp8_e5m2"},
    {Engine::sglang, "--tp", "--tp", Search::twice},
    {Engine::tensorrt_llm, "--kv_cache_free_gpu_memory_fraction", "--kv_cache_free_gpu_mem_fraction", Search::down,
     "0.85 0.8 0.7 0.6"},
    {Engine::tensorrt_llm, "--max_num_tokens", "--max_num_tokens", Search::down, "8192 4096 2048"},
    {Engine::tensorrt_llm, "--max_batch_size", "--max_batch_size", Search::halve},
    {Engine::tensorrt_llm, "--kv_cache_dtype", "--kv-cache-dtype", Search::either, "fp8", 8.9},
    {Engine::tensorrt_llm, "--tp_size", "--tp", Search::twice},
};

constexpr std::int64_t kMostGpus = 16;
constexpr double kLeastLength = 512;  // tokens of a request: shorter ones serve nobody

bool starts(const report::Prediction& p) { return p.fit.fits.value_or(false); }

// Of a whole or a broken number; 0: none.
double number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end == text.c_str() || *end != '\0' ? 0 : value;
}

// The option as the prediction resolved it.
std::string resolved(const report::Prediction& p, std::string_view option) {
  std::string name(option.substr(2));
  std::replace(name.begin(), name.end(), '-', '_');
  for (const report::Setting& setting : p.setup) {
    if (setting.name == name) return report::shown(setting);
  }
  return {};
}

struct Trial {
  Changes changes;  // the engine's flags
  Arguments arguments;
  report::Prediction prediction;
};

class Searcher {
 public:
  explicit Searcher(const CorrectionQuestion& question) : question_(question) {}

  std::vector<report::Correction> run() {
    const Trial base{{}, question_.arguments, question_.base};
    for (const Lever& lever : kLevers) {
      if (lever.engine != question_.launch.engine) continue;
      if (auto found = turn(lever, base); found && starts(found->prediction)) keep(*std::move(found));
    }
    if (out_.empty()) together(base);
    return std::move(out_);
  }

 private:
  std::optional<Trial> attempt(const Trial& from, const Lever& lever, const std::string& value) const {
    Arguments changed = from.arguments;
    const bool is_switch = value.empty();
    changed.replace(lever.option, is_switch ? "true" : value);
    if (lever.search == Search::twice && !enough_gpus(changed)) return std::nullopt;
    auto prediction = predict_serving(changed, question_.files);
    if (!prediction) return std::nullopt;
    const std::string given = lever.search == Search::most ? resolved(*prediction, lever.option) : value;
    if (lever.search == Search::most) {
      if (number_of(given) < kLeastLength) return std::nullopt;
      changed.replace(lever.option, given);
    }
    Trial out{from.changes, std::move(changed), *std::move(prediction)};
    std::erase_if(out.changes, [&](const auto& change) { return change.first == lever.flag; });
    out.changes.emplace_back(lever.flag, given);
    return out;
  }

  // More cards of the same kind, where those named are too few.
  bool enough_gpus(Arguments& changed) const {
    const std::int64_t needed = gpus_of(changed);
    if (needed > kMostGpus) return false;
    if (needed <= named_gpus()) return true;
    const std::string gpu = changed.text("--gpu");
    const auto letter = std::find_if_not(gpu.begin(), gpu.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (letter != gpu.begin() && letter != gpu.end() && *letter == 'x')  // "2xh100"
      changed.replace("--gpu", std::string(letter + 1, gpu.end()));
    changed.replace("--gpus", std::to_string(needed));
    return true;
  }

  std::int64_t named_gpus() const { return question_.base.device.count; }

  static std::int64_t gpus_of(const Arguments& arguments) {
    std::int64_t all = 1;
    for (const char* option :
         {"--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size", "--tp", "--pp"})
      all *= std::max<std::int64_t>(1, arguments.integer(option, 1, 1, 1 << 12).value_or(1));
    return all;
  }

  std::optional<Trial> turn(const Lever& lever, const Trial& from) const {
    const std::string present = resolved(from.prediction, lever.option);
    switch (lever.search) {
      case Search::up: return listed(lever, from, number_of(present), true);
      case Search::down: return listed(lever, from, number_of(present), false);
      case Search::most: return attempt(from, lever, "max");
      case Search::halve: return halved(lever, from, static_cast<std::int64_t>(number_of(present)));
      case Search::twice: return doubled(lever, from);
      case Search::either: return other(lever, from, present);
    }
    return std::nullopt;
  }

  std::optional<Trial> listed(const Lever& lever, const Trial& from, double present, bool above) const {
    std::optional<Trial> last;
    for_each_word(lever.values, ' ', [&](std::string_view value) {
      if (last && starts(last->prediction)) return;
      const double number = number_of(std::string(value));
      if (present <= 0 || (above ? number <= present : number >= present)) return;
      if (auto found = attempt(from, lever, std::string(value))) last = std::move(found);
    });
    return last;
  }

  std::optional<Trial> halved(const Lever& lever, const Trial& from, std::int64_t present) const {
    std::optional<Trial> last;
    for (std::int64_t value = present / 2; value >= 1; value /= 2) {
      auto found = attempt(from, lever, std::to_string(value));
      if (!found) break;
      last = std::move(found);
      if (starts(last->prediction)) break;
    }
    return last;
  }

  std::optional<Trial> doubled(const Lever& lever, const Trial& from) const {
    const std::int64_t present = from.arguments.integer(lever.option, 1, 1, 1 << 12).value_or(1);
    std::optional<Trial> last;
    for (std::int64_t value = 2 * present; value <= kMostGpus; value *= 2) {
      auto found = attempt(from, lever, std::to_string(value));
      if (!found) continue;
      last = std::move(found);
      if (starts(last->prediction)) break;
    }
    return last;
  }

  std::optional<Trial> other(const Lever& lever, const Trial& from, const std::string& present) const {
    if (from.arguments.has(lever.option) && present != "auto" && lever.values.empty()) return std::nullopt;
    if (!lever.values.empty() && present.starts_with(lever.values)) return std::nullopt;
    if (lever.option == "--quantization" && (from.arguments.has("--quantization") || stored_quantised(from.prediction)))
      return std::nullopt;
    if (!can(lever.least_capability)) return std::nullopt;
    return attempt(from, lever, std::string(lever.values));
  }

  // A checkpoint that is quantised already is not quantised again.
  static bool stored_quantised(const report::Prediction& p) {
    return std::any_of(p.assumptions.begin(), p.assumptions.end(), [](const report::Message& message) {
      return message.key == report::Text::assume_vllm_stored || message.key == report::Text::assume_vllm_stored_padded;
    });
  }

  bool can(double least) const {
    if (least <= 0) return true;
    const auto device = choose_equal_devices(question_.arguments, question_.files);
    if (!device || !device->gpu || !device->gpu->compute_capability) return false;
    const auto& capability = *device->gpu->compute_capability;
    return capability.major + 0.1 * capability.minor >= least - 1e-9;
  }

  // One more at a time; then without those that were not needed after all.
  void together(const Trial& base) {
    Trial at = base;
    for (const Lever& lever : kLevers) {
      if (lever.engine != question_.launch.engine || lever.search == Search::most) continue;
      if (lever.flag == "--gpu-memory-utilization" && lever.search == Search::down) continue;
      if (auto next = turn(lever, at)) at = *std::move(next);
      if (!starts(at.prediction)) {
        if (auto shorter = longest(at)) at = *std::move(shorter);
      }
      if (starts(at.prediction)) return keep(at);
    }
  }

  std::optional<Trial> longest(const Trial& from) const {
    for (const Lever& lever : kLevers) {
      if (lever.engine != question_.launch.engine || lever.search != Search::most) continue;
      auto found = attempt(from, lever, "max");
      if (found && starts(found->prediction)) return found;
    }
    return std::nullopt;
  }

  void keep(Trial trial) {
    report::Correction out;
    out.command = launch::changed_command(question_.launch, trial.changes);
    out.gpus = gpus_of(trial.arguments);
    out.more_gpus = out.gpus > named_gpus();
    out.changes = std::move(trial.changes);
    out.prediction = std::move(trial.prediction);
    out_.push_back(std::move(out));
  }

  const CorrectionQuestion& question_;
  std::vector<report::Correction> out_;
};

}  // namespace

std::vector<report::Correction> find_corrections(const CorrectionQuestion& question) {
  return Searcher(question).run();
}

}  // namespace ullage::cli
