#include "evidence/recording.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/json_large.h"

namespace ullage::evidence {
namespace {

constexpr std::int64_t kMostAddress = std::int64_t{1} << 62;
constexpr std::size_t kMostStreams = 256;

using memory::AllocatorSettings;

class Reader {
 public:
  Reader(const Json& document, std::string_view where) : top_(document, std::string(where)) {}

  Expected<Recording> read() {
    return read_settings()
        .and_then([&] { return collect_streams(); })
        .and_then([&] { return read_segments(); })
        .and_then([&] { return read_events(); })
        .and_then([&] { return read_end(); })
        .map([&] { return std::move(out_); });
  }

 private:
  using Done = Expected<void>;

  tl::unexpected<Error> wrong(std::string where, std::string message) const {
    return fail(ErrorCode::malformed, std::move(where), std::move(message));
  }

  Expected<const Json*> list(const char* key) const {
    const Json* found = top_.find(key);
    if (found == nullptr || !found->is_array())
      return wrong(top_.where(key), "expected a list; is this a recording of allocations?");
    return found;
  }

  Expected<std::int64_t> number(const Json& value, std::string_view where, std::int64_t low, std::int64_t high) const {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(high)) ||
        value.get<std::int64_t>() < low || value.get<std::int64_t>() > high) {
      return wrong(std::string(where),
                   fmt::format("{}; expected a whole number from {} to {}", value_excerpt(value), low, high));
    }
    return value.get<std::int64_t>();
  }

  // The settings in effect are told one by one; those that a snapshot does not tell stand in the text.
  Done read_settings() {
    const Json* found = top_.find("settings");
    if (found == nullptr) return {};
    if (!found->is_object()) return wrong(top_.where("settings"), "expected an object or null");
    const JsonObject settings(*found, top_.where("settings"));
    const auto text = settings.string("PYTORCH_CUDA_ALLOC_CONF", "");
    if (!text) return tl::unexpected<Error>(text.error());
    auto parsed = memory::parse_allocator_settings(*text, settings.where("PYTORCH_CUDA_ALLOC_CONF"));
    if (!parsed) return tl::unexpected<Error>(parsed.error());
    out_.settings = *parsed;
    const auto split = settings.integer("max_split_size", -1, -1, std::numeric_limits<std::int64_t>::max());
    if (!split) return tl::unexpected<Error>(split.error());
    if (settings.has("max_split_size")) out_.settings.max_split_bytes = *split < 0 ? memory::kUnlimitedBytes : *split;
    const auto expandable = settings.boolean("expandable_segments", out_.settings.expandable_segments);
    if (!expandable) return tl::unexpected<Error>(expandable.error());
    if (*expandable) {
      return fail(ErrorCode::unsupported, settings.where("expandable_segments"),
                  "recordings do not say which pages were mapped; nothing to compare");
    }
    out_.settings.expandable_segments = false;
    // Works only with a share of the card that a recording does not tell; what it freed is recorded.
    out_.settings.garbage_collection_threshold = 0;
    return read_roundup(settings);
  }

  Done read_roundup(const JsonObject& settings) {
    if (!settings.has("roundup_power2_divisions")) return {};
    const auto by_interval = settings.object("roundup_power2_divisions");
    if (!by_interval) return tl::unexpected<Error>(by_interval.error());
    for (std::size_t i = 0; i < memory::kRoundupIntervals; ++i) {
      const auto divisions = by_interval->integer(std::to_string(std::int64_t{1} << i), 0, 0, 1 << 20);
      if (!divisions) return tl::unexpected<Error>(divisions.error());
      if ((*divisions & (*divisions - 1)) != 0)
        return wrong(by_interval->where(std::to_string(std::int64_t{1} << i)), "divisions are powers of two");
      out_.settings.roundup_divisions[i] = *divisions;
    }
    return {};
  }

  // Streams are handles of any value: they are numbered in ascending order, as PyTorch's allocator sorts by them.
  Done collect_streams() {
    const auto add = [&](const Json& value, std::string_view where) -> Done {
      const auto stream = number(value, where, 0, kMostAddress);
      if (!stream) return tl::unexpected<Error>(stream.error());
      if (std::find(streams_.begin(), streams_.end(), *stream) == streams_.end()) streams_.push_back(*stream);
      if (streams_.size() > kMostStreams) return wrong(std::string(where), "more than 256 streams");
      return {};
    };
    const auto events = list("events");
    if (!events) return tl::unexpected<Error>(events.error());
    std::size_t at = 0;
    for (const Json& event : **events) {
      const std::string where = fmt::format("{}: event {}", top_.where(), at++);
      if (!event.is_array() || event.size() != 4) return wrong(where, "expected [action, address, bytes, stream]");
      if (auto added = add(event[3], where); !added) return added;
    }
    const auto segments = list("segments_end");
    if (!segments) return tl::unexpected<Error>(segments.error());
    for (const Json& segment : **segments) {
      if (!segment.is_object()) return wrong(top_.where("segments_end"), "expected objects");
      const Json* stream = JsonObject(segment, "").find("stream");
      if (stream == nullptr) continue;
      if (auto added = add(*stream, top_.where("segments_end.stream")); !added) return added;
    }
    std::sort(streams_.begin(), streams_.end());
    return {};
  }

  memory::Stream stream_number(std::int64_t stream) const {
    const auto at = std::lower_bound(streams_.begin(), streams_.end(), stream);
    return static_cast<memory::Stream>(at - streams_.begin());
  }

  Done read_events() {
    const Json& events = *top_.find("events");
    out_.events.reserve(events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      const std::string where = fmt::format("{}: event {}", top_.where(), i);
      const auto action = action_of(events[i][0], where);
      if (!action) return tl::unexpected<Error>(action.error());
      const auto address = number(events[i][1], where, 0, kMostAddress);
      if (!address) return tl::unexpected<Error>(address.error());
      const auto bytes = number(events[i][2], where, 1, memory::kMostRequestBytes);
      if (!bytes) return tl::unexpected<Error>(bytes.error());
      out_.events.push_back(
          {*action, stream_number(events[i][3].get<std::int64_t>()), static_cast<std::uint64_t>(*address), *bytes});
    }
    return {};
  }

  Expected<RecordedAction> action_of(const Json& value, const std::string& where) const {
    const std::string name = value.is_string() ? value.get<std::string>() : std::string();
    if (name == "a") return RecordedAction::alloc;
    if (name == "r") return RecordedAction::free_requested;
    if (name == "f") return RecordedAction::free_completed;
    if (name == "S") return RecordedAction::segment_alloc;
    if (name == "F") return RecordedAction::segment_free;
    return wrong(where, fmt::format("{} is no action; expected a, r, f, S or F", value_excerpt(value)));
  }

  Done read_segments() {
    const Json& segments = *top_.find("segments_end");
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const JsonObject segment(segments[i], fmt::format("{}: segments_end[{}]", top_.where(), i));
      if (auto read = read_segment(segment); !read) return read;
    }
    std::sort(out_.segments_end.begin(), out_.segments_end.end(),
              [](const RecordedSegment& a, const RecordedSegment& b) { return a.address < b.address; });
    for (std::size_t i = 1; i < out_.segments_end.size(); ++i) {
      const RecordedSegment& before = out_.segments_end[i - 1];
      if (before.address + static_cast<std::uint64_t>(before.bytes) > out_.segments_end[i].address)
        return wrong(top_.where("segments_end"), fmt::format("segments overlap at {}", before.address));
    }
    return {};
  }

  Done read_segment(const JsonObject& json) {
    RecordedSegment segment;
    const auto address = json.integer("address", 0, kMostAddress);
    if (!address) return tl::unexpected<Error>(address.error());
    const auto total = json.integer("total", 1, memory::kMostRequestBytes);
    if (!total) return tl::unexpected<Error>(total.error());
    const auto type = json.string("type", "");
    if (!type) return tl::unexpected<Error>(type.error());
    if (*type != "small" && *type != "large") return wrong(json.where("type"), "expected small or large");
    const Json* stream = json.find("stream");
    segment.address = static_cast<std::uint64_t>(*address);
    segment.bytes = *total;
    segment.small = *type == "small";
    if (stream != nullptr) segment.stream = stream_number(stream->get<std::int64_t>());
    const Json* blocks = json.find("blocks");
    if (blocks == nullptr || !blocks->is_array()) return wrong(json.where("blocks"), "expected a list");
    std::uint64_t next = segment.address;
    for (const Json& block : *blocks) {
      const auto read = read_block(block, json.where("blocks"));
      if (!read) return tl::unexpected<Error>(read.error());
      if (read->address != next) return wrong(json.where("blocks"), fmt::format("a gap or an overlap at {}", next));
      next += static_cast<std::uint64_t>(read->bytes);
      segment.blocks.push_back(*read);
    }
    if (next != segment.address + static_cast<std::uint64_t>(segment.bytes))
      return wrong(json.where("blocks"), "they do not add up to the segment");
    out_.segments_end.push_back(std::move(segment));
    return {};
  }

  Expected<RecordedBlock> read_block(const Json& json, const std::string& where) const {
    if (!json.is_array() || json.size() != 4 || !json[3].is_string())
      return wrong(where, "expected [address, bytes, requested bytes, state]");
    const auto address = number(json[0], where, 0, kMostAddress);
    if (!address) return tl::unexpected<Error>(address.error());
    const auto bytes = number(json[1], where, 1, memory::kMostRequestBytes);
    if (!bytes) return tl::unexpected<Error>(bytes.error());
    const auto requested = number(json[2], where, 0, memory::kMostRequestBytes);
    if (!requested) return tl::unexpected<Error>(requested.error());
    const std::string state = json[3].get<std::string>();
    return RecordedBlock{static_cast<std::uint64_t>(*address), *bytes, *requested, state.starts_with("active")};
  }

  Done read_end() {
    std::int64_t sum = 0;
    for (const RecordedSegment& segment : out_.segments_end) sum = add_saturated(sum, segment.bytes);
    const auto reserved = top_.integer("reserved_bytes_end", sum, 0, memory::kUnlimitedBytes);
    if (!reserved) return tl::unexpected<Error>(reserved.error());
    if (*reserved != sum) {
      return wrong(top_.where("reserved_bytes_end"), fmt::format("{}, but the segments add up to {}", *reserved, sum));
    }
    out_.reserved_bytes_end = sum;
    return {};
  }

  JsonObject top_;
  std::vector<std::int64_t> streams_;
  Recording out_;
};

}  // namespace

Expected<Recording> read_recording(std::string_view text, std::string_view where) {
  const auto document = parse_large_json(text, where, kMostRecordingBytes);
  if (!document) return tl::unexpected<Error>(document.error());
  if (!document->is_object())
    return fail(ErrorCode::malformed, std::string(where), "expected an object; is this a recording of allocations?");
  return Reader(*document, where).read();
}

}  // namespace ullage::evidence
