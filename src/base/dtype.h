// Element types of tensors, with their names in the field and their sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ullage {

enum class DType : std::uint8_t { f64, f32, bf16, f16, i64, i32, u8, boolean, u64, c64 };

// Bytes of one element.
constexpr std::int64_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
    case DType::u64:
    case DType::c64: return 8;  // c64: two floats of 4 bytes
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::u8:
    case DType::boolean: return 1;
  }
  return 0;
}

constexpr bool is_floating(DType type) { return type <= DType::f16; }

// 16-bit floating types: what half-precision kernels accept.
constexpr bool is_half(DType type) { return type == DType::bf16 || type == DType::f16; }

// Short name as people write it: "fp32", "bf16", "int64".
std::string_view name_of(DType type);

// Reads fp32, float32, bf16, bfloat16, fp16, float16, half, fp64, int64, int32, uint8, bool.
std::optional<DType> parse_dtype(std::string_view text);

}  // namespace ullage
