#include <algorithm>

#include "base/json.h"
#include "report/json_parts.h"
#include "report/replay.h"

namespace ullage::report {
namespace {

Json difference_json(const ReplayedFile& file) {
  if (!file.result.first_difference) return nullptr;
  const evidence::ReplayDifference& d = *file.result.first_difference;
  return {{"file", file.name},
          {"event", d.event},
          {"kind", d.freed ? "segment_free" : "segment_alloc"},
          {"requested_bytes", d.requested_bytes},
          {"recorded_bytes", or_null(d.recorded_bytes)},
          {"made_bytes", or_null(d.made_bytes)}};
}

Json recording_json(const ReplayedFile& file) {
  const evidence::ReplayResult& r = file.result;
  return {{"file", file.name},
          {"events", r.events},
          {"segments_recorded", r.segments_recorded},
          {"segments_made", r.segments_made},
          {"equal", r.equal()},
          {"first_difference", difference_json(file)},
          {"reserved_bytes_end", r.reserved_bytes_end},
          {"reserved_bytes_end_recorded", r.reserved_bytes_end_recorded},
          {"blocks_elsewhere", r.blocks_elsewhere}};
}

}  // namespace

std::string replay_json(const std::vector<ReplayedFile>& files) {
  Json rows = Json::array();
  std::int64_t recorded = 0;
  std::int64_t made = 0;
  std::int64_t reserved = 0;
  bool equal = true;
  Json difference = nullptr;
  for (const ReplayedFile& file : files) {
    rows.push_back(recording_json(file));
    recorded += file.result.segments_recorded;
    made += file.result.segments_made;
    reserved += file.result.reserved_bytes_end;
    equal = equal && file.result.equal();
    if (difference.is_null()) difference = difference_json(file);
  }
  const Json out = {{"schema", "ullage.replay/1"},
                    {"command", "replay"},
                    {"segments_recorded", recorded},
                    {"segments_made", made},
                    {"equal", equal},
                    {"first_difference", std::move(difference)},
                    {"reserved_bytes_end", reserved},
                    {"recordings", std::move(rows)}};
  return printed(out);
}

}  // namespace ullage::report
