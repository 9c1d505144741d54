#include "speed/training_runs.h"

#include <fmt/core.h>

#include "base/json.h"
#include "base/lines.h"
#include "data/training_runs.h"

namespace ullage::speed {
namespace {

constexpr double kSecondsPerHour = 3600;

std::string_view name_of_line(std::string_view line) { return quoted_after(line, "{\"name\":\""); }

Expected<TrainingRun> parse_run(std::string_view line) {
  const auto json = parse_json(line, "data/training_runs.jsonl");
  if (!json) return tl::unexpected<Error>(json.error());
  const JsonObject row(*json, "data/training_runs.jsonl");
  const auto tokens = row.number("tokens", 0);
  const auto hours = row.number("gpu_hours", 0);
  if (!tokens || !hours || *hours <= 0) return fail(ErrorCode::internal, row.where(), "a run without tokens or hours");
  return TrainingRun{row.string("name", "").value_or(""), row.string("gpu", "").value_or(""),
                     *tokens / (*hours * kSecondsPerHour), row.string("source", "").value_or("")};
}

}  // namespace

Expected<TrainingRun> find_training_run(std::string_view name, std::string_view where) {
  std::string_view found;
  std::string known;
  for_each_line(data::training_runs(), [&](std::string_view line) {
    const std::string_view one = name_of_line(line);
    if (compare_ignoring_case(one, name) == 0) found = line;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", one);
  });
  if (!found.empty()) return parse_run(found);
  return fail(ErrorCode::not_found, std::string(where),
              fmt::format("'{}' is neither tokens per second of one GPU nor a run that is known here; known are {}",
                          name.substr(0, 60), known));
}

}  // namespace ullage::speed
