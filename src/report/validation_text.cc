#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/printable.h"
#include "report/layout.h"
#include "report/validation.h"

namespace ullage::report {
namespace {

constexpr std::size_t kReasons = 12;  // most that are listed
constexpr std::size_t kGap = 2;       // columns between two cells

std::string percent(double fraction, int digits) { return fmt::format("{:.{}f} %", 100 * fraction, digits); }

std::string error_text(double error) { return error == 0 ? "0" : percent(error, 3); }

std::string number_text(double value) {
  if (std::floor(value) == value && std::fabs(value) < 9e15) return with_separators(static_cast<std::int64_t>(value));
  return fmt::format("{:.6g}", value);
}

// Rows of cells, the first `left` columns set to the left, the others to the right.
class Table {
 public:
  explicit Table(std::size_t left) : left_(left) {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  void write(TextPage& page) const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()), 0);
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
    }
    for (const auto& row : rows_) page.line(joined(row, widths));
  }

 private:
  std::string joined(const std::vector<std::string>& row, const std::vector<std::size_t>& widths) const {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += std::string(kGap, ' ') + (i < left_ ? pad_right(row[i], widths[i]) : pad_left(row[i], widths[i]));
    }
    return line.substr(0, line.find_last_not_of(' ') + 1);
  }

  std::size_t left_;
  std::vector<std::vector<std::string>> rows_;
};

void write_rows(TextPage& page, const std::vector<corpus::Score>& scores) {
  Table table(2);
  table.add({page.say(Text::validate_case), page.say(Text::validate_quantity), page.say(Text::validate_predicted),
             page.say(Text::validate_measured), page.say(Text::validate_error)});
  for (const corpus::Score& score : scores) {
    table.add({printable(score.id), printable(score.key), number_text(score.predicted), number_text(score.measured),
               error_text(score.error)});
  }
  page.line();
  table.write(page);
}

std::string inside_text(const corpus::Summary& s) {
  return s.ranged == 0 ? "" : fmt::format("{}/{}", s.inside, s.ranged);
}

void write_summaries(TextPage& page, const std::vector<corpus::Summary>& summaries, bool evidence) {
  Table table(2);
  table.add({page.say(Text::validate_engine), page.say(Text::validate_quantity), page.say(Text::validate_count),
             page.say(Text::validate_equal), page.say(Text::validate_median), page.say(Text::validate_percentile),
             page.say(Text::validate_largest), page.say(Text::validate_inside), page.say(Text::validate_width)});
  bool any = false;
  for (const corpus::Summary& s : summaries) {
    if (s.evidence != evidence) continue;
    any = true;
    table.add({s.engine, s.key, std::to_string(s.count), std::to_string(s.equal), error_text(s.median),
               error_text(s.percentile_90), error_text(s.largest), inside_text(s),
               s.ranged == 0 ? "" : percent(s.median_width, 1)});
  }
  if (!any) return;
  page.line();
  if (!evidence) page.line(page.say(Text::validate_formula));
  table.write(page);
}

void write_taken(TextPage& page, const std::vector<corpus::Taken>& list) {
  if (!list.empty()) page.line();
  for (const corpus::Taken& taken : list) {
    const Text kind = taken.setup.inferred ? Text::validate_inferred : Text::validate_stated;
    const auto count = static_cast<std::int64_t>(taken.cases);
    if (!taken.setup.unit.key.empty())
      page.line(page.say(Message{Text::validate_unit,
                                 {{"count", count},
                                  {"quantity", taken.setup.unit.key},
                                  {"percent", percent(taken.setup.unit.factor - 1, 1)},
                                  {"only", static_cast<std::int64_t>(taken.only_so)},
                                  {"kind", kind},
                                  {"says", taken.setup.says}}}));
    if (taken.setup.args.empty()) continue;
    std::string options;
    for (const std::string& word : taken.setup.args) options += (options.empty() ? "" : " ") + word;
    page.line(page.say(Message{Text::validate_taken,
                               {{"count", count}, {"options", options}, {"kind", kind}, {"says", taken.setup.says}}}));
  }
}

// What the reasons have in common: the text, counted.
void write_reasons(TextPage& page, Text heading, const std::vector<corpus::Unanswered>& list) {
  if (list.empty()) return;
  std::map<std::string, std::size_t> counts;
  for (const corpus::Unanswered& entry : list) ++counts[entry.reason];
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  page.line();
  page.line(page.say(Message{heading, {{"count", static_cast<std::int64_t>(list.size())}}}));
  for (std::size_t i = 0; i < std::min(sorted.size(), kReasons); ++i) {
    page.line(fmt::format("  {:>4}  {}", sorted[i].second, sorted[i].first));
  }
  if (sorted.size() > kReasons) page.line(fmt::format("  {:>4}  …", sorted.size() - kReasons));
}

void write_equal(TextPage& page, Text key, std::size_t equal, std::size_t count) {
  const double share = count == 0 ? 0 : static_cast<double>(equal) / static_cast<double>(count);
  page.line(page.say(Message{key,
                             {{"equal", static_cast<std::int64_t>(equal)},
                              {"count", static_cast<std::int64_t>(count)},
                              {"percent", percent(share, 1)}}}));
}

void write_verdict(TextPage& page, const corpus::Validation& v) {
  if (v.scores.empty()) return;
  std::size_t equal = 0;
  for (const corpus::Score& score : v.scores) equal += score.error == 0 ? 1 : 0;
  page.line();
  write_equal(page, Text::validate_equal_cases, v.equal, v.scored);
  write_equal(page, Text::validate_equal_values, equal, v.scores.size());
  const std::vector<corpus::Score> worst = corpus::worst(v.scores, 1);
  if (worst[0].error == 0) return page.line(page.say(Text::validate_no_error));
  page.line(
      page.say(Message{Text::validate_largest_error,
                       {{"error", error_text(worst[0].error)}, {"case", worst[0].id}, {"quantity", worst[0].key}}}));
}

}  // namespace

std::string validation_text(const corpus::Validation& v, std::size_t rows, const TextStyle& style) {
  TextPage page(style);
  page.line(page.say(Message{Text::validate_cases,
                             {{"read", static_cast<std::int64_t>(v.read)},
                              {"selected", static_cast<std::int64_t>(v.selected)},
                              {"scored", static_cast<std::int64_t>(v.scored)}}}));
  const std::vector<corpus::Score> worst = corpus::worst(v.scores, rows);
  if (style.detail != Detail::quiet && !worst.empty()) write_rows(page, worst);
  write_summaries(page, v.summaries, true);
  write_summaries(page, v.summaries, false);
  write_taken(page, v.taken);
  write_reasons(page, Text::validate_skipped, v.skipped);
  write_reasons(page, Text::validate_failed, v.failed);
  write_reasons(page, Text::validate_missing, v.missing);
  write_verdict(page, v);
  return page.take();
}

}  // namespace ullage::report
