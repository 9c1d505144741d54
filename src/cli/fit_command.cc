// `ullage fit`: models against cards.
#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/fit_rows.h"
#include "cli/output.h"
#include "cli/run.h"
#include "engines/transformers/serve.h"
#include "hardware/gpu_list.h"
#include "model/catalogue.h"

namespace ullage::cli {
namespace {

using report::FitRow;
using report::FitTable;
using report::Text;

constexpr std::int64_t kMostContext = 1 << 26;
constexpr std::int64_t kUsualRows = 20;
constexpr std::int64_t kMostRows = 100'000;

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> out;
  for_each_word(list, ',', [&](std::string_view one) { out.emplace_back(one); });
  return out;
}

Expected<FitWanted> wanted_of(const Arguments& arguments) {
  FitWanted out;
  const auto tokens = arguments.integer("--context", out.least_tokens, 2, kMostContext);
  if (!tokens) return tl::unexpected<Error>(tokens.error());
  out.least_tokens = *tokens;
  out.dtype = arguments.text("--dtype");
  return out;
}

Expected<FitGpu> local_gpu(const std::string& word, const Files& files) {
  Arguments one;
  one.add("--gpu", word);
  return choose_device(one, files).map([&](ChosenDevice device) { return fit_gpu(word, *std::move(device.gpu), 1); });
}

// A count in front says how many there are at most.
Expected<FitGpu> named_gpu(const std::string& word) {
  const auto set = hardware::find_devices(word);
  if (!set) return tl::unexpected<Error>(set.error());
  const hardware::DeviceGroup& group = set->groups.front();
  const bool counted = group.count > 1;
  return fit_gpu(counted ? group.gpu.id : word, group.gpu, counted ? group.count : plan::kMostCards);
}

Expected<std::vector<FitGpu>> gpus_of(const Arguments& arguments, const Files& files) {
  const bool ranks = arguments.positionals().empty();
  std::vector<FitGpu> out;
  for (const std::string& word : parts_of(arguments.text("--gpu", "local"))) {
    const bool local = word.starts_with("local");
    auto gpu = local ? local_gpu(word, files) : named_gpu(word);
    if (!gpu) return tl::unexpected<Error>(gpu.error());
    // Of a card whose models are asked for there is one, if nothing else is said.
    if (ranks && gpu->most == plan::kMostCards && gpu->word == word) gpu->most = 1;
    out.push_back(*std::move(gpu));
  }
  if (out.empty()) return fail(ErrorCode::invalid_argument, "--gpu", "names no card; write one such as rtx-4090");
  return out;
}

// Cards that CUDA's kernels run on.
Expected<std::vector<FitGpu>> all_gpus() {
  hardware::GpuFilter filter;
  filter.vendor = "NVIDIA";
  return hardware::list_gpus(filter).map([](std::vector<hardware::Gpu> gpus) {
    std::vector<FitGpu> out;
    for (hardware::Gpu& gpu : gpus) {
      std::string word = gpu.id;
      out.push_back(fit_gpu(std::move(word), std::move(gpu), plan::kMostCards));
    }
    return out;
  });
}

// One model on one kind of card, before anything is confirmed.
struct Pair {
  FitModel* model = nullptr;
  const FitGpu* gpu = nullptr;
  plan::FitChoice choice;
};

// Fewer cards, then more bits, then the smaller card: what is the least that one needs.
bool needs_less(const Pair& a, const Pair& b) {
  const auto key = [](const Pair& p) {
    return std::tuple(p.choice.setup.cards, p.choice.setup.quantization.size(), p.gpu->gpu.usable_bytes);
  };
  return key(a) < key(b);
}

bool is_larger(const Pair& a, const Pair& b) {
  return model::parameter_count(a.model->loaded.architecture) > model::parameter_count(b.model->loaded.architecture);
}

Expected<void> add_rows(const Pair& pair, const FitWanted& wanted, const Files& files, bool all_choices,
                        FitTable& table) {
  auto rows = fit_rows(*pair.model, *pair.gpu, wanted, files);
  if (!rows) return tl::unexpected<Error>(rows.error());
  if (!all_choices) rows->resize(1);
  for (FitRow& row : *rows) {
    if (row.cards > 0 || all_choices) table.rows.push_back(std::move(row));
    else ++table.not_fitting;
  }
  return {};
}

// The pairs that the estimate finds, best first; the first `most` of them confirmed.
Expected<void> add_best(std::vector<Pair> pairs, std::int64_t most, const FitWanted& wanted, const Files& files,
                        FitTable& table) {
  std::size_t next = 0;
  for (; next < pairs.size() && static_cast<std::int64_t>(table.rows.size()) < most; ++next) {
    if (auto added = add_rows(pairs[next], wanted, files, false, table); !added) return added;
  }
  table.left_out = static_cast<std::int64_t>(pairs.size() - next);
  return {};
}

void add_pair(FitModel& model, const FitGpu& gpu, const FitWanted& wanted, std::vector<Pair>& pairs, FitTable& table) {
  const auto choices = estimated_fits(model, gpu, wanted);
  if (!choices || choices->empty()) ++table.not_fitting;
  else pairs.push_back({&model, &gpu, choices->front()});
}

// Every model of the catalogue whose generation is in this version, on one kind of card.
Expected<void> rank_models(const FitGpu& gpu, std::int64_t most, const FitWanted& wanted, const Files& files,
                           FitTable& table) {
  table.ranks_models = true;
  std::vector<std::unique_ptr<FitModel>> models;
  std::vector<Pair> pairs;
  for (const model::ModelRow& row : model::list_models()) {
    if (row.partial || !engines::transformers::serves(row.model_type)) continue;
    auto model = load_fit_model(std::string(row.name), wanted, files);
    if (!model) continue;
    models.push_back(*std::move(model));
    add_pair(*models.back(), gpu, wanted, pairs, table);
  }
  std::stable_sort(pairs.begin(), pairs.end(), is_larger);
  return add_best(std::move(pairs), most, wanted, files, table);
}

Expected<void> rank_gpus(FitModel& model, std::int64_t most, const FitWanted& wanted, const Files& files,
                         FitTable& table) {
  const auto gpus = all_gpus();
  if (!gpus) return tl::unexpected<Error>(gpus.error());
  std::vector<Pair> pairs;
  for (const FitGpu& gpu : *gpus) add_pair(model, gpu, wanted, pairs, table);
  std::stable_sort(pairs.begin(), pairs.end(), needs_less);
  return add_best(std::move(pairs), most, wanted, files, table);
}

// A row for a model that has no answer.
void add_unmodelled(const std::string& word, const Error& error, FitTable& table) {
  FitRow row;
  row.model = word;
  row.not_modelled = to_string(error);
  table.rows.push_back(std::move(row));
}

void add_warnings(const FitModel& model, FitTable& table) {
  for (const report::Message& warning : model.loaded.warnings) {
    if (warning.key == Text::warn_quantised) continue;  // of training; here the row says it
    if (std::find(table.warnings.begin(), table.warnings.end(), warning) == table.warnings.end())
      table.warnings.push_back(warning);
  }
}

// On the cards that were named, or the best of all.
Expected<void> add_model(FitModel& model, const std::vector<FitGpu>& gpus, std::int64_t most, const FitWanted& wanted,
                         const Files& files, FitTable& table) {
  if (gpus.empty()) return rank_gpus(model, most, wanted, files, table);
  Expected<void> added;
  for (std::size_t i = 0; added && i < gpus.size(); ++i)
    added = add_rows({&model, &gpus[i], {}}, wanted, files, true, table);
  return added;
}

Expected<FitTable> fit_models(const Invocation& call, const FitWanted& wanted, std::int64_t most) {
  FitTable out;
  const Arguments& arguments = call.arguments;
  auto gpus = arguments.has("--gpu") ? gpus_of(arguments, call.files) : Expected<std::vector<FitGpu>>{};
  if (!gpus) return tl::unexpected<Error>(gpus.error());
  for (const FitGpu& gpu : *gpus) {
    if (auto linked = check_interconnect(arguments, {gpu.gpu}); !linked) return tl::unexpected<Error>(linked.error());
  }
  std::optional<Error> unmodelled;
  bool answered = false;
  for (const std::string& word : parts_of(arguments.positionals().front())) {
    const std::size_t before = out.rows.size();
    const auto added = load_fit_model(word, wanted, call.files).and_then([&](const std::unique_ptr<FitModel>& model) {
      add_warnings(*model, out);
      return add_model(*model, *gpus, most, wanted, call.files, out);
    });
    answered = answered || added;
    if (added) continue;
    if (added.error().code != ErrorCode::unsupported) return tl::unexpected<Error>(added.error());
    if (!unmodelled) unmodelled = added.error();
    out.rows.resize(before);
    add_unmodelled(word, added.error(), out);
  }
  if (!answered && unmodelled) return tl::unexpected<Error>(*unmodelled);
  if (out.rows.empty() && out.not_fitting == 0)
    return fail(ErrorCode::invalid_argument, "MODEL",
                "names no model; write one such as 7B or a name of `ullage models`");
  return out;
}

Expected<FitTable> fit_catalogue(const Invocation& call, const FitWanted& wanted, std::int64_t most) {
  FitTable out;
  const auto gpus = gpus_of(call.arguments, call.files);
  if (!gpus) return tl::unexpected<Error>(gpus.error());
  if (gpus->size() > 1)
    return fail(ErrorCode::invalid_argument, "--gpu",
                "models are ranked for one kind of card; name one, or name MODEL");
  if (auto linked = check_interconnect(call.arguments, {gpus->front().gpu}); !linked)
    return tl::unexpected<Error>(linked.error());
  if (auto ranked = rank_models(gpus->front(), most, wanted, call.files, out); !ranked)
    return tl::unexpected<Error>(ranked.error());
  return out;
}

Expected<FitTable> fit_table(const Invocation& call) {
  const auto wanted = wanted_of(call.arguments);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  const auto most = call.arguments.integer("--rows", kUsualRows, 1, kMostRows);
  if (!most) return tl::unexpected<Error>(most.error());
  auto out =
      call.arguments.positionals().empty() ? fit_catalogue(call, *wanted, *most) : fit_models(call, *wanted, *most);
  if (!out) return out;
  out->least_tokens = wanted->least_tokens;
  out->speed_tokens = wanted->least_tokens;
  out->assumptions.push_back({Text::assume_fit, {{"new", wanted->new_tokens()}}});
  out->assumptions.push_back({Text::assume_fit_order, {}});
  out->assumptions.push_back({Text::assume_fit_speed, {{"tokens", report::Count{wanted->least_tokens}}}});
  out->assumptions.push_back({Text::assume_fit_power, {}});
  return out;
}

}  // namespace

Expected<int> fit_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  const auto table = fit_table(call);
  if (!table) return tl::unexpected<Error>(table.error());
  return call.streams.out(wants_json(call.arguments) ? report::fit_json(*table) : report::fit_text(*table, *style))
      .map([] { return int{kAnswered}; });
}

}  // namespace ullage::cli
