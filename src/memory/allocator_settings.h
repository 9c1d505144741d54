// Settings of PyTorch's CUDA caching allocator, as PYTORCH_CUDA_ALLOC_CONF (PYTORCH_ALLOC_CONF) gives them.
//
// Source: c10/cuda/CUDACachingAllocator.cpp and CUDAAllocatorConfig.cpp (PyTorch 1.13.1 and 2.6.0), in newer trees
// c10/core/AllocatorConfig.h.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace ullage::memory {

inline constexpr std::int64_t kUnlimitedBytes = std::numeric_limits<std::int64_t>::max();

// The same in every release read.
inline constexpr std::int64_t kMinBlockBytes = 512;           // what sizes are rounded up to
inline constexpr std::int64_t kSmallBytes = 1 << 20;          // the largest request of the small pool
inline constexpr std::int64_t kSmallSegmentBytes = 2 << 20;   // segments of the small pool
inline constexpr std::int64_t kLargeSegmentBytes = 20 << 20;  // segments of the large pool's lesser requests
inline constexpr std::int64_t kLargeRequestBytes = 10 << 20;  // from here on a segment is made to measure,
inline constexpr std::int64_t kSegmentGranularity = 2 << 20;  // in multiples of this
inline constexpr std::int64_t kMostRequestBytes = 1LL << 60;  // "more than 1EB"
inline constexpr std::size_t kRoundupIntervals = 16;          // 1 MiB, 2 MiB … 32 GiB and more

struct TorchVersion {
  int major = 2;
  int minor = 14;
  auto operator<=>(const TorchVersion&) const = default;
};

struct AllocatorSettings {
  std::int64_t max_split_bytes = kUnlimitedBytes;                  // larger blocks are never split
  std::int64_t max_non_split_rounding_bytes = kLargeSegmentBytes;  // by how much such a block may exceed a request
  std::int64_t large_segment_bytes = kLargeSegmentBytes;
  double garbage_collection_threshold = 0;  // share of the allowed memory; works only with memory_fraction
  double memory_fraction = 0;               // set_per_process_memory_fraction; 0: not set
  bool expandable_segments = false;
  // Divisions between powers of two that sizes are rounded up to, by interval of the size; 0 and 1: multiples of 512.
  std::array<std::int64_t, kRoundupIntervals> roundup_divisions{};
  // Fewer divisions do not round. Up to 1.13 one division did (to the power of two itself).
  std::int64_t fewest_divisions = 2;

  friend bool operator==(const AllocatorSettings&, const AllocatorSettings&) = default;
};

// What a request takes out of the allocator, before any unsplit tail.
std::int64_t rounded_bytes(const AllocatorSettings& settings, std::int64_t requested_bytes);
// The segment that is made for a request of that rounded size, without expandable segments.
std::int64_t segment_bytes(const AllocatorSettings& settings, std::int64_t rounded);

// Reads "key:value,key:[a:b,c:d]". Keys that change nothing on the device (pinned memory, locks) are read and left;
// keys that `version` does not know, values out of range and other backends are errors. `where` names the source of the
// text.
Expected<AllocatorSettings> parse_allocator_settings(std::string_view text, std::string_view where,
                                                     TorchVersion version = {});
// The settings that differ from the defaults, in the same syntax.
std::string to_string(const AllocatorSettings& settings);

}  // namespace ullage::memory
