#include <cmath>
#include <map>

#include "base/json.h"
#include "report/json_parts.h"
#include "report/validation.h"

namespace ullage::report {
namespace {

// Bytes and tokens are whole numbers and look like it.
Json number(double value) {
  if (std::floor(value) == value && std::fabs(value) < 9e15) return static_cast<std::int64_t>(value);
  return value;
}

Json score_json(const corpus::Score& score) {
  Json out = {{"id", score.id},
              {"engine", score.engine},
              {"key", score.key},
              {"evidence", score.evidence},
              {"predicted", number(score.predicted)},
              {"measured", number(score.measured)},
              {"error", score.error}};
  if (score.range) {
    out["range"] = {number(score.range->low), number(score.range->high)};
    out["inside"] = score.inside;
    if (score.perhaps > score.measured) out["perhaps"] = number(score.perhaps);
  }
  return out;
}

Json summary_json(const corpus::Summary& summary) {
  return {{"engine", summary.engine},
          {"key", summary.key},
          {"evidence", summary.evidence},
          {"count", summary.count},
          {"equal", summary.equal},
          {"median", summary.median},
          {"percentile_90", summary.percentile_90},
          {"largest", summary.largest},
          {"ranged", summary.ranged},
          {"inside", summary.inside},
          {"median_width", summary.ranged > 0 ? Json(summary.median_width) : Json(nullptr)}};
}

Json unanswered_json(const std::vector<corpus::Unanswered>& list) {
  Json out = Json::array();
  for (const corpus::Unanswered& entry : list) {
    out.push_back({{"id", entry.id}, {"where", entry.where}, {"reason", entry.reason}});
  }
  return out;
}

Json taken_json(const std::vector<corpus::Taken>& list) {
  Json out = Json::array();
  for (const corpus::Taken& taken : list) {
    Json entry = {{"cases", taken.cases},
                  {"args", taken.setup.args},
                  {"kind", taken.setup.inferred ? "inferred" : "stated"},
                  {"says", taken.setup.says}};
    const corpus::OpenUnit& unit = taken.setup.unit;
    if (!unit.key.empty())
      entry["unit"] = {{"key", unit.key}, {"factor", unit.factor}, {"inside_only_so", taken.only_so}};
    out.push_back(std::move(entry));
  }
  return out;
}

Json cases_json(const corpus::Validation& v) {
  return {{"read", v.read},   {"selected", v.selected},      {"compared", v.scored},
          {"equal", v.equal}, {"skipped", v.skipped.size()}, {"failed", v.failed.size()}};
}

Json values_json(const corpus::Validation& v) {
  std::size_t equal = 0;
  for (const corpus::Score& score : v.scores) equal += score.error == 0 ? 1 : 0;
  return {{"compared", v.scores.size()}, {"equal", equal}, {"not_computed", v.missing.size()}};
}

}  // namespace

std::string validation_json(const corpus::Validation& v, std::optional<std::size_t> rows) {
  Json out = {{"schema", "ullage.validate/1"}, {"cases", cases_json(v)}, {"values", values_json(v)}};
  const std::vector<corpus::Score> worst = corpus::worst(v.scores, 1);
  out["largest_error"] = worst.empty() ? Json(nullptr) : score_json(worst[0]);
  out["summaries"] = Json::array();
  for (const corpus::Summary& summary : v.summaries) out["summaries"].push_back(summary_json(summary));
  out["taken"] = taken_json(v.taken);
  out["rows"] = Json::array();
  for (const corpus::Score& score : rows ? corpus::worst(v.scores, *rows) : v.scores) {
    out["rows"].push_back(score_json(score));
  }
  out["skipped"] = unanswered_json(v.skipped);
  out["failed"] = unanswered_json(v.failed);
  out["not_computed"] = unanswered_json(v.missing);
  return printed(out);
}

}  // namespace ullage::report
