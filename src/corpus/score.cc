#include "corpus/score.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "corpus/resolve.h"

namespace ullage::corpus {
namespace {

double precision_of(const Case& entry, std::string_view key) {
  for (const Quantity& quantity : entry.precision) {
    if (quantity.key == key) return quantity.value;
  }
  return 0;
}

// A model that is a file beside the cases, named by where it lies.
std::vector<std::string> with_files(const Case& entry) {
  std::vector<std::string> args = entry.args;
  const std::string model(model_of(entry));
  std::error_code error;
  if (!model.empty() && std::filesystem::is_regular_file(entry.folder + model, error)) args[1] = entry.folder + model;
  return args;
}

// "peak.process_bytes" has its range in "peak.process_range_bytes", "kv.bytes" in "kv.range_bytes".
std::optional<Range> range_of(const Json& prediction, const std::string& key) {
  constexpr std::string_view kSuffix = "bytes";
  if (!key.ends_with(kSuffix)) return std::nullopt;
  const Json* found = at_path(prediction, key.substr(0, key.size() - kSuffix.size()) + "range_bytes");
  if (found == nullptr || !found->is_array() || found->size() != 2) return std::nullopt;
  const auto low = as_number((*found)[0]);
  const auto high = as_number((*found)[1]);
  if (!low || !high) return std::nullopt;
  return Range{*low, *high};
}

double median_of(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

class Run {
 public:
  Run(const Selection& selection, const std::string& key_prefix, const Predict& predict,
      const std::vector<std::string>& by, std::span<const StatedSetup> setups)
      : selection_(selection), key_prefix_(key_prefix), predict_(predict), by_(by), setups_(setups) {
    for (const StatedSetup& setup : setups) out_.taken.push_back({setup});
  }

  void take(const Case& entry) {
    ++out_.read;
    // What is known without running decides first.
    Selection labels = selection_;
    labels.where.clear();
    if (!selected(entry, nullptr, labels)) return;
    std::vector<std::size_t> used;
    const auto prediction = ask(entry, used);
    if (!selected(entry, prediction ? &*prediction : nullptr, selection_)) return;
    ++out_.selected;
    if (prediction) {
      const std::size_t before = out_.scored;
      score(entry, *prediction, used);
      for (const std::size_t i : used) out_.taken[i].cases += out_.scored - before;
      return;
    }
    auto& list = prediction.error().code == ErrorCode::unsupported ? out_.skipped : out_.failed;
    list.push_back({entry.id, entry.where, to_string(prediction.error())});
  }

  Validation finish() {
    for (const Score& score : out_.scores) take_in(score);
    for (std::size_t i = 0; i < gathered_.size(); ++i) describe(out_.summaries[i], gathered_[i]);
    std::erase_if(out_.taken, [](const Taken& taken) { return taken.cases == 0; });
    return std::move(out_);
  }

 private:
  // With what is known of its set-up, whose rows are `used` then.
  Expected<Json> ask(const Case& entry, std::vector<std::size_t>& used) const {
    const std::vector<std::string> written = with_files(entry);
    std::vector<std::string> args = written;
    used = add_stated(entry, setups_, args);
    auto prediction = predict_(args, entry.date);
    if (prediction || used.empty()) return prediction;
    used.clear();
    return predict_(written, entry.date);
  }

  std::string group_of(const Case& entry, const Json& prediction) const {
    if (by_.empty()) return entry.engine;
    std::string out;
    for (const std::string& key : by_) {
      const std::string value = value_of(entry, &prediction, key);
      out += (out.empty() ? "" : " ") + (value.empty() ? "-" : value);
    }
    return out;
  }

  // How many times the bytes that are written the quantity may mean.
  double factor_of(const std::string& key, const std::vector<std::size_t>& used) const {
    double factor = 1;
    for (const std::size_t i : used) {
      if (setups_[i].unit.key == key) factor = std::max(factor, setups_[i].unit.factor);
    }
    return factor;
  }

  void count_only_so(const std::string& key, const std::vector<std::size_t>& used) {
    for (const std::size_t i : used) out_.taken[i].only_so += setups_[i].unit.key == key ? 1 : 0;
  }

  void score(const Case& entry, const Json& prediction, const std::vector<std::size_t>& used) {
    const std::size_t before = out_.scores.size();
    bool equal = true;
    for (const Quantity& quantity : entry.expect) {
      if (!quantity.key.starts_with(key_prefix_)) continue;
      const auto predicted = number_at(prediction, quantity.key);
      if (!predicted) {
        out_.missing.push_back({entry.id, entry.where, quantity.key});
        continue;
      }
      const double precision = precision_of(entry, quantity.key);
      const double error = error_of(*predicted, quantity.value, precision);
      equal = equal && error == 0;
      Score made{
          entry.id, group_of(entry, prediction), quantity.key, entry.method != "formula", *predicted, quantity.value,
          error};
      made.range = range_of(prediction, quantity.key);
      made.perhaps = made.measured * factor_of(quantity.key, used);
      if (made.range) {
        const double low = made.range->low - precision;
        made.inside = made.perhaps >= low && made.measured <= made.range->high + precision;
        if (made.inside && made.measured < low) count_only_so(quantity.key, used);
      }
      out_.scores.push_back(std::move(made));
    }
    if (out_.scores.size() == before) return;
    ++out_.scored;
    out_.equal += equal ? 1 : 0;
  }

  // What the scores of one summary have.
  struct Gathered {
    std::vector<double> errors;
    std::vector<double> widths;  // of ranges, relative to what was measured
    std::size_t inside = 0;
  };

  void take_in(const Score& score) {
    Gathered& gathered = gathered_of(score);
    gathered.errors.push_back(score.error);
    if (!score.range) return;
    const double width = score.range->high - score.range->low;
    gathered.widths.push_back(score.measured == 0 ? 0 : width / std::fabs(score.measured));
    gathered.inside += score.inside ? 1 : 0;
  }

  // What belongs to the score's summary, which is made if it is the first.
  Gathered& gathered_of(const Score& score) {
    std::vector<Summary>& all = out_.summaries;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Summary& summary) {
      return summary.engine == score.engine && summary.key == score.key && summary.evidence == score.evidence;
    });
    if (found != all.end()) return gathered_[static_cast<std::size_t>(found - all.begin())];
    all.push_back({score.engine, score.key, score.evidence});
    return gathered_.emplace_back();
  }

  static void describe(Summary& summary, Gathered& gathered) {
    std::vector<double>& errors = gathered.errors;
    const std::size_t n = errors.size();
    summary.count = n;
    summary.equal = static_cast<std::size_t>(std::count(errors.begin(), errors.end(), 0.0));
    summary.median = median_of(errors);
    summary.percentile_90 = errors[(9 * n + 9) / 10 - 1];
    summary.largest = errors.back();
    summary.ranged = gathered.widths.size();
    summary.inside = gathered.inside;
    if (summary.ranged > 0) summary.median_width = median_of(gathered.widths);
  }

  const Selection& selection_;
  const std::string& key_prefix_;
  const Predict& predict_;
  const std::vector<std::string>& by_;
  std::span<const StatedSetup> setups_;
  Validation out_;
  std::vector<Gathered> gathered_;  // by summary
};

}  // namespace

double error_of(double predicted, double measured, double precision) {
  const double difference = std::fabs(predicted - measured);
  if (difference <= precision) return 0;
  return measured == 0 ? 1 : difference / std::fabs(measured);
}

Validation validate(const std::vector<Case>& cases, const Selection& selection, const std::string& key_prefix,
                    const Predict& predict, const std::vector<std::string>& by, std::span<const StatedSetup> setups) {
  Run run(selection, key_prefix, predict, by, setups);
  for (const Case& entry : cases) run.take(entry);
  return run.finish();
}

std::vector<Score> worst(std::vector<Score> scores, std::size_t rows) {
  std::stable_sort(scores.begin(), scores.end(), [](const Score& a, const Score& b) { return a.error > b.error; });
  if (scores.size() > rows) scores.resize(rows);
  return scores;
}

}  // namespace ullage::corpus
