#include "memory/allocator_settings.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace ullage::memory {
namespace {

AllocatorSettings settings(std::string_view text, TorchVersion version = {}) {
  const auto read = parse_allocator_settings(text, "PYTORCH_CUDA_ALLOC_CONF", version);
  EXPECT_TRUE(read) << (read ? "" : to_string(read.error()));
  return read.value_or(AllocatorSettings{});
}

std::string error(std::string_view text, TorchVersion version = {}) {
  const auto read = parse_allocator_settings(text, "conf", version);
  return read ? "" : to_string(read.error());
}

TEST(AllocatorSettings, NothingIsTheDefault) {
  EXPECT_EQ(settings(""), AllocatorSettings{});
  EXPECT_EQ(settings(" backend:native , release_lock_on_cudamalloc:True"), AllocatorSettings{});
}

TEST(AllocatorSettings, EveryKeyIsRead) {
  const AllocatorSettings s = settings(
      "expandable_segments:True, max_split_size_mb:128,max_non_split_rounding_mb:64,garbage_collection_threshold:0.8,"
      "large_segment_size_mb:12,per_process_memory_fraction:0.5,roundup_power2_divisions:8");
  EXPECT_TRUE(s.expandable_segments);
  EXPECT_EQ(s.max_split_bytes, 128 * kMiB);
  EXPECT_EQ(s.max_non_split_rounding_bytes, 64 * kMiB);
  EXPECT_DOUBLE_EQ(s.garbage_collection_threshold, 0.8);
  EXPECT_EQ(s.large_segment_bytes, 12 * kMiB);
  EXPECT_DOUBLE_EQ(s.memory_fraction, 0.5);
  EXPECT_EQ(s.roundup_divisions[7], 8);
  EXPECT_EQ(settings(to_string(s)), s);
}

TEST(AllocatorSettings, ListsOfDivisionsFillWhatLiesBelowAndAbove) {
  const AllocatorSettings s = settings("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
  EXPECT_EQ(s.roundup_divisions[0], 1);
  EXPECT_EQ(s.roundup_divisions[8], 1);
  EXPECT_EQ(s.roundup_divisions[9], 2);
  EXPECT_EQ(s.roundup_divisions[10], 8);  // ">" begins at the last one named
  EXPECT_EQ(s.roundup_divisions[15], 8);
  EXPECT_EQ(settings(to_string(s)), s);
}

TEST(AllocatorSettings, WhatIsWrongIsNamed) {
  EXPECT_EQ(error("max_split_size_mb:20"), "conf: max_split_size_mb: must be greater than 20");
  EXPECT_EQ(error("max_split_size_mb"), "conf: expected ':' behind 'max_split_size_mb'");
  EXPECT_EQ(error("max_split_size_mb:x"), "conf: max_split_size_mb: expected a whole number, not 'x'");
  EXPECT_EQ(error("expandable_segments:yes"), "conf: expandable_segments: expected True or False, not 'yes'");
  EXPECT_EQ(error("garbage_collection_threshold:1.5"),
            "conf: garbage_collection_threshold: expected a share between 0 and 1, not '1.5'");
  EXPECT_EQ(error("roundup_power2_divisions:3"), "conf: roundup_power2_divisions: divisions are powers of two");
  EXPECT_EQ(error("roundup_power2_divisions:[256:4"), "conf: roundup_power2_divisions: expected ']' before 'the end'");
  EXPECT_EQ(error("colour:blue"), "conf: 'colour' is no setting of PyTorch's allocator");
  EXPECT_EQ(error("expandable_segments:True max_split_size_mb:40"),
            "conf: expandable_segments: expected True or False, not 'Truemax_split_size_mb'");
  EXPECT_NE(error("backend:cudaMallocAsync"), "");
}

TEST(AllocatorSettings, KeysAreAsOldAsPyTorchHasThem) {
  EXPECT_EQ(error("expandable_segments:True", {2, 0}),
            "conf: expandable_segments: PyTorch knows it from 2.1 on; leave it out");
  EXPECT_EQ(error("large_segment_size_mb:12", {2, 6}),
            "conf: large_segment_size_mb: PyTorch knows it from 2.11 on; leave it out");
  EXPECT_TRUE(settings("expandable_segments:True", {2, 1}).expandable_segments);
}

TEST(AllocatorSettings, OneDivisionRoundsInOldReleasesOnly) {
  EXPECT_EQ(rounded_bytes(settings("roundup_power2_divisions:1", {1, 13}), 5 * kMiB), 8 * kMiB);
  EXPECT_EQ(rounded_bytes(settings("roundup_power2_divisions:1"), 5 * kMiB), 5 * kMiB);
  EXPECT_EQ(rounded_bytes(settings("roundup_power2_divisions:4"), 1200), 1536);
  EXPECT_EQ(rounded_bytes(settings("roundup_power2_divisions:4"), 1200 * 1024), 1280 * 1024);
}

TEST(AllocatorSettings, SegmentsAreMadeToMeasureFromTenMebibytesOn) {
  const AllocatorSettings s;
  EXPECT_EQ(segment_bytes(s, 512), 2 * kMiB);
  EXPECT_EQ(segment_bytes(s, kMiB), 2 * kMiB);
  EXPECT_EQ(segment_bytes(s, kMiB + 512), 20 * kMiB);
  EXPECT_EQ(segment_bytes(s, 10 * kMiB - 512), 20 * kMiB);
  EXPECT_EQ(segment_bytes(s, 10 * kMiB), 10 * kMiB);
  EXPECT_EQ(segment_bytes(s, 10 * kMiB + 512), 12 * kMiB);
}

}  // namespace
}  // namespace ullage::memory
