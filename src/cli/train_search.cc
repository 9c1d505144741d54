#include "cli/train_search.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "plan/largest.h"
#include "plan/sweep.h"

namespace ullage::cli {
namespace {

constexpr std::array<std::string_view, 2> kSearched{"--micro-batch", "--seq-len"};
constexpr std::int64_t kMostSamples = 1 << 20;
constexpr std::int64_t kMostTokens = 1 << 26;

std::int64_t limit_of(std::string_view option) { return option == "--micro-batch" ? kMostSamples : kMostTokens; }

// What is left on the card; a prediction without a verdict has no card to leave anything on.
Expected<std::int64_t> headroom_of(const Expected<report::Prediction>& prediction) {
  if (!prediction) return tl::unexpected<Error>(prediction.error());
  if (!prediction->fit.headroom_bytes)
    return fail(ErrorCode::invalid_argument, "--gpu", "nothing to fit into; `max` needs a card and its kernels");
  return *prediction->fit.headroom_bytes;
}

// A value that no set-up can have, not one that this set-up cannot be run with.
bool is_bad_value(const Error& error, std::string_view option, std::string_view value) {
  return error.where == option && error.message.starts_with(fmt::format("'{}' is not ", value));
}

struct RowQuestion {
  const std::string& searched;  // the option that is `max`; empty: none
  const PredictStep& predict;
  const PredictStep& quickly;
};

// `found` is what the searched option came out at.
Expected<report::Prediction> predict_row(const Arguments& arguments, const RowQuestion& question, std::string& found) {
  if (question.searched.empty()) return question.predict(arguments);
  auto largest = search_largest(arguments, question.searched, question.quickly);
  if (!largest) return tl::unexpected<Error>(largest.error());
  found = largest->arguments.text(question.searched);
  auto prediction = question.predict(largest->arguments);
  if (prediction) prediction->assumptions.insert(prediction->assumptions.begin(), std::move(largest->assumption));
  return prediction;
}

}  // namespace

Expected<std::string> searched_option(const Arguments& arguments) {
  std::string found;
  for (const std::string_view option : kSearched) {
    if (arguments.text(option) != "max") continue;
    if (!found.empty())
      return fail(ErrorCode::invalid_argument, std::string(option),
                  fmt::format("max, and {} max, too; search one of them at a time", found));
    found = option;
  }
  if (!found.empty() && !arguments.has("--gpu"))
    return fail(ErrorCode::invalid_argument, found, "max of what? Name a card with --gpu");
  return found;
}

Expected<Found> search_largest(const Arguments& arguments, const std::string& option, const PredictStep& predict) {
  const auto with = [&](std::int64_t value) {
    Arguments changed = arguments;
    changed.replace(option, std::to_string(value));
    return changed;
  };
  const auto found =
      plan::find_largest(1, limit_of(option), [&](std::int64_t value) { return headroom_of(predict(with(value))); });
  if (!found) return tl::unexpected<Error>(found.error());
  if (found->size == 0) {
    return fail(ErrorCode::invalid_argument, option,
                "not even 1 fits on this card; `--advise` with this option at 1 shows what would");
  }
  const report::Text text = found->at_the_limit ? report::Text::assume_largest_allowed : report::Text::assume_largest;
  return Found{with(found->size), {text, {{"option", option}, {"value", found->size}, {"next", found->size + 1}}}};
}

Expected<report::SweepTable> run_sweep(const Arguments& arguments, const PredictStep& predict,
                                       const PredictStep& quickly) {
  const auto sweep = plan::parse_sweep(arguments.text("--sweep"));
  if (!sweep) return tl::unexpected<Error>(sweep.error());
  const CommandSpec& train = *find_command("train");
  report::SweepTable table{sweep->option, {}, {}};
  Arguments base = arguments;
  base.remove("--sweep");
  const auto searched = searched_option(base);
  if (!searched) return tl::unexpected<Error>(searched.error());
  if (*searched == sweep->option)
    return fail(ErrorCode::invalid_argument, sweep->option, "max, and swept, too; leave one of them out");
  table.searched = *searched;
  std::optional<Error> first_error;
  for (const std::string& value : sweep->values) {
    const std::array<std::string, 3> words{"model", sweep->option, value};
    auto parsed = parse_arguments(train, words);
    if (!parsed) return tl::unexpected<Error>(parsed.error());
    Arguments changed = base;
    changed.replace_with(*parsed);
    report::SweepRow row{value, {}, {}, {}};
    auto prediction = predict_row(changed, {*searched, predict, quickly}, row.found);
    if (prediction) {
      row.prediction = *std::move(prediction);
    } else {
      if (is_bad_value(prediction.error(), sweep->option, value)) return tl::unexpected<Error>(prediction.error());
      if (!first_error) first_error = prediction.error();
      row.error = to_string(prediction.error());
    }
    table.rows.push_back(std::move(row));
  }
  const bool any = std::any_of(table.rows.begin(), table.rows.end(), [](const auto& row) { return row.prediction; });
  if (!any && first_error) return tl::unexpected<Error>(*first_error);
  return table;
}

}  // namespace ullage::cli
