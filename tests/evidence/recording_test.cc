#include "evidence/recording.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/file.h"

namespace ullage::evidence {
namespace {

// One segment of 20 MiB with a block in use from the start on, a free rest, and what `events` say.
std::string recording(const std::string& events, const std::string& segments, const std::string& settings = "null") {
  return R"({"events": [)" + events + R"(], "segments_end": [)" + segments + R"(], "settings": )" + settings + "}";
}

constexpr const char* kHalfUsed =
    R"({"address": 0, "total": 20971520, "type": "large", "stream": 0,
        "blocks": [[0, 8388608, 8388608, "active"], [8388608, 12582912, 0, "free"]]})";

ReplayResult result_of(const std::string& text) {
  const auto read = read_recording(text, "r.json");
  EXPECT_TRUE(read) << (read ? "" : to_string(read.error()));
  if (!read) return {};
  const auto replayed = replay(*read, "r.json");
  EXPECT_TRUE(replayed) << (replayed ? "" : to_string(replayed.error()));
  return replayed.value_or(ReplayResult{});
}

std::string error_of(const std::string& text) {
  const auto read = read_recording(text, "r.json");
  if (!read) return to_string(read.error());
  const auto replayed = replay(*read, "r.json");
  return replayed ? "" : to_string(replayed.error());
}

TEST(Recording, ABlockThatWasThereBeforeIsKept) {
  const ReplayResult result = result_of(recording(R"(["a", 8388608, 4194304, 0], ["r", 8388608, 4194304, 0],
      ["f", 8388608, 4194304, 0])",
                                                  kHalfUsed));
  EXPECT_TRUE(result.equal());
  EXPECT_EQ(result.segments_made, 0);
  EXPECT_EQ(result.blocks_elsewhere, 0);
  EXPECT_EQ(result.reserved_bytes_end, 20 * kMiB);
}

// The block freed first had a tail of less than 1 MiB: what was requested behind it lies behind the tail.
TEST(Recording, AFreedBlocksTailIsItsOwn) {
  const std::string segments =
      R"({"address": 0, "total": 20971520, "type": "large", "stream": 0,
          "blocks": [[0, 16777216, 0, "free"], [16777216, 4194304, 4194304, "active"]]})";
  const ReplayResult result =
      result_of(recording(R"(["f", 0, 16000000, 0], ["a", 0, 16777216, 0], ["f", 0, 16777216, 0])", segments));
  EXPECT_TRUE(result.equal());
  EXPECT_EQ(result.blocks_elsewhere, 0);
}

TEST(Recording, SegmentsThatWereMadeMeanwhileAreMadeAgain) {
  const std::string segments = std::string(kHalfUsed) +
                               R"(, {"address": 41943040, "total": 14680064, "type": "large", "stream": 0,
                                  "blocks": [[41943040, 14680064, 13631489, "active"]]})";
  const ReplayResult result =
      result_of(recording(R"(["S", 41943040, 14680064, 0], ["a", 41943040, 13631489, 0])", segments));
  EXPECT_TRUE(result.equal());
  EXPECT_EQ(result.segments_recorded, 1);
  EXPECT_EQ(result.segments_made, 1);
}

TEST(Recording, TheFirstDifferenceIsTold) {
  const std::string segments = std::string(kHalfUsed) +
                               R"(, {"address": 41943040, "total": 20971520, "type": "large", "stream": 0,
                                  "blocks": [[41943040, 20971520, 5242880, "active"]]})";
  // 5 MiB would have fitted into the free 12 MiB.
  const ReplayResult result =
      result_of(recording(R"(["S", 41943040, 20971520, 0], ["a", 41943040, 5242880, 0])", segments));
  ASSERT_TRUE(result.first_difference);
  EXPECT_EQ(result.first_difference->event, 1u);
  EXPECT_EQ(result.first_difference->recorded_bytes, 20 * kMiB);
  EXPECT_EQ(result.first_difference->made_bytes, std::nullopt);
  EXPECT_FALSE(result.equal());
}

// A recording may end between a segment and the request it was for; nothing of ours can make it.
TEST(Recording, ASegmentRecordedLastIsADifference) {
  const std::string segments = std::string(kHalfUsed) +
                               R"(, {"address": 41943040, "total": 20971520, "type": "large", "stream": 0,
                                  "blocks": [[41943040, 20971520, 0, "free"]]})";
  const ReplayResult result = result_of(recording(R"(["S", 41943040, 20971520, 0])", segments));
  ASSERT_TRUE(result.first_difference);
  EXPECT_EQ(result.first_difference->event, 0u);
  EXPECT_EQ(result.first_difference->recorded_bytes, 20 * kMiB);
  EXPECT_FALSE(result.equal());
}

TEST(Recording, ASegmentThatWasGivenBackIsGivenBack) {
  const ReplayResult result =
      result_of(recording(R"(["f", 41943040, 13631489, 0], ["F", 41943040, 14680064, 0])", kHalfUsed));
  EXPECT_TRUE(result.equal());
  EXPECT_EQ(result.reserved_bytes_end, 20 * kMiB);
}

TEST(Recording, SettingsOfASnapshotCount) {
  const std::string segments =
      R"({"address": 0, "total": 73400320, "type": "large", "stream": 0, "blocks": [[0, 73400320, 73400320, "active"]]},
         {"address": 104857600, "total": 41943040, "type": "large", "stream": 0,
          "blocks": [[104857600, 41943040, 41943040, "active"]]})";
  const std::string events =
      R"(["S", 0, 73400320, 0], ["a", 0, 73400320, 0], ["f", 0, 73400320, 0],
         ["S", 104857600, 41943040, 0], ["a", 104857600, 41943040, 0], ["a", 0, 73400320, 0])";
  EXPECT_TRUE(result_of(recording(events, segments, R"({"max_split_size": 67108864})")).equal());
  EXPECT_FALSE(result_of(recording(events, segments, R"({"max_split_size": -1})")).equal());
}

// Numbers of two snapshots: a compiled forward pass (PyTorch 2.6) and a LoRA run (2.1). Not one block lies elsewhere.
TEST(Recording, RealOnesAreReproducedBlockByBlock) {
  for (const char* name : {"compiled-forward", "lora"}) {
    const auto text = read_file(std::string(ULLAGE_TEST_DATA "/recordings/") + name + ".json", kMostRecordingBytes);
    ASSERT_TRUE(text);
    const ReplayResult result = result_of(*text);
    EXPECT_TRUE(result.equal()) << name;
    EXPECT_GT(result.segments_made, 100) << name;
    EXPECT_EQ(result.segments_made, result.segments_recorded) << name;
    EXPECT_EQ(result.blocks_elsewhere, 0) << name;
  }
}

TEST(Recording, WhatContradictsItselfIsRefused) {
  EXPECT_EQ(error_of("[]"), "r.json: expected an object; is this a recording of allocations?");
  EXPECT_EQ(error_of("{}"), "r.json: events: expected a list; is this a recording of allocations?");
  EXPECT_EQ(error_of(recording(R"(["x", 0, 1, 0])", kHalfUsed)),
            "r.json: event 0: \"x\" is no action; expected a, r, f, S or F");
  EXPECT_EQ(error_of(recording(R"(["a", -1, 1, 0])", kHalfUsed)),
            "r.json: event 0: -1; expected a whole number from 0 to 4611686018427387904");
  EXPECT_EQ(error_of(recording(R"(["f", 99, 512, 0])", kHalfUsed)),
            "r.json: two blocks overlap at 99; the recording is not whole");
  EXPECT_EQ(error_of(recording(R"(["f", 30000000, 512, 0])", kHalfUsed)),
            "r.json: 1 blocks lie in no segment; the recording is not whole");
  EXPECT_EQ(error_of(recording("", R"({"address": 0, "total": 100, "type": "large", "blocks": [[0, 99, 1, "free"]]})")),
            "r.json: segments_end[0]: blocks: they do not add up to the segment");
  EXPECT_EQ(error_of(recording("", "", R"({"expandable_segments": true})")),
            "r.json: settings: expandable_segments: recordings do not say which pages were mapped; nothing to compare");
}

}  // namespace
}  // namespace ullage::evidence
