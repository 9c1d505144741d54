// `ullage models`, `ullage gpus` and `ullage engines`.
#include <fmt/core.h>

#include "base/lines.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/run.h"
#include "engines/budget/rules.h"
#include "engines/sglang/rules.h"
#include "engines/vllm/rules.h"
#include "hardware/gpu_list.h"
#include "model/catalogue.h"
#include "model/family.h"
#include "model/outline.h"
#include "report/engine_rules.h"
#include "report/lists.h"

namespace ullage::cli {
namespace {

std::string filter_text(const Arguments& arguments) {
  return arguments.positionals().empty() ? std::string() : arguments.positionals().front();
}

// Nothing where the family is not built yet or the configuration lacks what counting needs.
std::optional<std::int64_t> parameters_of(const model::ModelRow& row) {
  const bool known = model::find_family(row.model_type) != nullptr || model::find_outline(row.model_type) != nullptr;
  if (!known) return std::nullopt;
  const auto entry = model::find_model(row.name);
  if (!entry) return std::nullopt;
  const auto architecture = model::build_outline(entry->config, entry->name);
  if (!architecture) return std::nullopt;
  return model::parameter_count(*architecture);
}

std::vector<report::ListedModel> listed_models(const Arguments& arguments) {
  std::vector<report::ListedModel> out;
  for (const model::ModelRow& row : model::list_models({filter_text(arguments), arguments.text("--model-type")})) {
    out.push_back({std::string(row.name), std::string(row.model_type), row.partial, parameters_of(row)});
  }
  return out;
}

Expected<void> read_sizes(const Arguments& arguments, hardware::GpuFilter& filter) {
  const auto least = arguments.bytes("--min-memory");
  if (!least) return tl::unexpected<Error>(least.error());
  const auto most = arguments.bytes("--max-memory");
  if (!most) return tl::unexpected<Error>(most.error());
  filter.min_memory_bytes = *least;
  filter.max_memory_bytes = *most;
  return {};
}

Expected<void> read_capability(const Arguments& arguments, hardware::GpuFilter& filter) {
  if (!arguments.has("--min-compute-capability")) return {};
  const std::string given = arguments.text("--min-compute-capability");
  filter.min_compute_capability = hardware::parse_compute_capability(given);
  if (filter.min_compute_capability) return {};
  return fail(ErrorCode::invalid_argument, "--min-compute-capability",
              fmt::format("'{}' is no compute capability; write one such as 8.0", given.substr(0, 40)));
}

Expected<hardware::GpuFilter> gpu_filter(const Arguments& arguments) {
  hardware::GpuFilter filter;
  filter.text = filter_text(arguments);
  filter.vendor = arguments.text("--vendor");
  filter.architecture = arguments.text("--architecture");
  filter.bf16 = arguments.has("--bf16");
  filter.fp8 = arguments.has("--fp8");
  filter.nvlink = arguments.has("--nvlink");
  const auto year = arguments.integer("--min-year", 0, 1990, 2100);
  if (!year) return tl::unexpected<Error>(year.error());
  if (*year > 0) filter.min_year = static_cast<int>(*year);
  return read_sizes(arguments, filter).and_then([&] { return read_capability(arguments, filter); }).map([&] {
    return filter;
  });
}

Expected<std::vector<hardware::Gpu>> listed_gpus(const Arguments& arguments) {
  const auto filter = gpu_filter(arguments);
  if (!filter) return tl::unexpected<Error>(filter.error());
  return hardware::parse_gpu_sort(arguments.text("--sort", "id"), "--sort").and_then([&](hardware::GpuSort order) {
    return hardware::list_gpus(*filter, order);
  });
}

}  // namespace

Expected<int> models_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  const std::vector<report::ListedModel> models = listed_models(call.arguments);
  const std::string answer =
      wants_json(call.arguments) ? report::models_json(models) : report::models_text(models, *style);
  return call.streams.out(answer).map([] { return int{kAnswered}; });
}

Expected<int> gpus_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  const auto gpus = listed_gpus(call.arguments);
  if (!gpus) return tl::unexpected<Error>(gpus.error());
  const std::string answer = wants_json(call.arguments) ? report::gpus_json(*gpus) : report::gpus_text(*gpus, *style);
  return call.streams.out(answer).map([] { return int{kAnswered}; });
}

// Rules whose id or item holds the text, in the file's order.
Expected<int> engines_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  const std::string wanted = filter_text(call.arguments);
  std::vector<report::EngineRules> engines{{"vllm", "vLLM", engines::vllm::rules()},
                                           {"sglang", "SGLang", engines::sglang::rules()}};
  for (const engines::budget::Engine engine : engines::budget::kEngines) {
    engines.push_back({std::string(engines::budget::name_of(engine)), std::string(engines::budget::title_of(engine)),
                       engines::budget::rules(engine)});
  }
  for (report::EngineRules& engine : engines) {
    std::erase_if(engine.rules, [&](const engines::serving::Rule& rule) {
      return !contains_ignoring_case(engine.name + " " + rule.item + " " + rule.id, wanted);
    });
  }
  const std::string answer =
      wants_json(call.arguments) ? report::engine_rules_json(engines) : report::engine_rules_text(engines, *style);
  return call.streams.out(answer).map([] { return int{kAnswered}; });
}

}  // namespace ullage::cli
