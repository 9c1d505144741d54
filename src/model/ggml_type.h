// ggml's element types: blocks of elements that share their scales, as GGUF files store them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ullage::model {

// The numbers are those of the file format.
enum class GgmlType : std::uint8_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  q1_0 = 41,
  q2_0 = 42,
};

struct GgmlLayout {
  GgmlType type = GgmlType::f32;
  std::string_view name;   // "Q4_K", as llama.cpp's tools print it
  std::int64_t block = 1;  // elements of a block; a row is a whole number of blocks
  std::int64_t bytes_of_block = 0;

  bool quantised() const { return block > 1; }
};

// All of them, by number.
std::span<const GgmlLayout> ggml_layouts();

const GgmlLayout& layout_of(GgmlType type);

// nullptr for numbers that no type has, or none has any more (Q4_2, and those that files once stored repacked).
const GgmlLayout* find_ggml_type(std::uint32_t number);

// By name, ignoring case: "Q4_K", "q4_k", "BF16"; nullptr for others.
const GgmlLayout* find_ggml_type(std::string_view name);

// Bytes of a row of `elements`; nothing where they are no whole number of blocks.
std::optional<std::int64_t> row_bytes(const GgmlLayout& layout, std::int64_t elements);

}  // namespace ullage::model
