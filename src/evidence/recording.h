// A recording of a program's allocations, as PyTorch's memory snapshot has it, and the same requests through our
// allocator: an experiment on our rules, not a prediction.
//
// A recording usually begins with memory in use. What was there is worked out from the end: segments that were not made
// while it ran, in them the blocks that are in use at the end without ever having been requested, and those freed
// without having been requested before. The rest was free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "memory/caching_allocator.h"

namespace ullage::evidence {

inline constexpr std::int64_t kMostRecordingBytes = 256 << 20;

enum class RecordedAction : std::uint8_t { alloc, free_requested, free_completed, segment_alloc, segment_free };

struct RecordedEvent {
  RecordedAction action;
  memory::Stream stream;  // numbered by the streams' ascending values
  std::uint64_t address;
  std::int64_t bytes;  // as requested; of segments, their size
};

struct RecordedBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested_bytes = 0;
  bool in_use = false;
};

struct RecordedSegment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  bool small = false;
  memory::Stream stream = 0;
  std::vector<RecordedBlock> blocks;  // they tile the segment
};

struct Recording {
  memory::AllocatorSettings settings;
  std::vector<RecordedEvent> events;
  std::vector<RecordedSegment> segments_end;
  std::int64_t reserved_bytes_end = 0;
};

// Reads docs/formats/recording.md's JSON. Every number is checked; segments that are not tiled by their blocks are
// refused.
Expected<Recording> read_recording(std::string_view text, std::string_view where);

struct ReplayDifference {
  std::size_t event = 0;                       // index into the recording's events
  std::int64_t requested_bytes = 0;            // of the request there
  std::optional<std::int64_t> recorded_bytes;  // segment made or freed there, none: no segment
  std::optional<std::int64_t> made_bytes;      // by us
  bool freed = false;                          // the segment was freed in the recording, and could not be here
};

struct ReplayResult {
  std::int64_t events = 0;
  std::int64_t segments_recorded = 0;  // made while the recording ran
  std::int64_t segments_made = 0;      // by our allocator meanwhile
  std::optional<ReplayDifference> first_difference;
  std::int64_t reserved_bytes_end = 0;           // ours
  std::int64_t reserved_bytes_end_recorded = 0;  // the recording's
  std::int64_t blocks_elsewhere = 0;             // requests that were served at another address than recorded
  bool equal() const { return !first_difference && reserved_bytes_end == reserved_bytes_end_recorded; }
};

// Fails where the recording contradicts itself: blocks that overlap, a free of what is not there.
Expected<ReplayResult> replay(const Recording& recording, std::string_view where);

}  // namespace ullage::evidence
