#include "base/dtype.h"

#include <array>
#include <utility>

namespace ullage {

std::string_view name_of(DType type) {
  switch (type) {
    case DType::f64: return "fp64";
    case DType::f32: return "fp32";
    case DType::bf16: return "bf16";
    case DType::f16: return "fp16";
    case DType::i64: return "int64";
    case DType::i32: return "int32";
    case DType::u8: return "uint8";
    case DType::boolean: return "bool";
    case DType::u64: return "uint64";
    case DType::c64: return "complex64";
  }
  return "";
}

std::optional<DType> parse_dtype(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, DType>, 19> kNames{{
      {"fp32", DType::f32},        {"float32", DType::f32}, {"float", DType::f32},   {"bf16", DType::bf16},
      {"bfloat16", DType::bf16},   {"fp16", DType::f16},    {"float16", DType::f16}, {"half", DType::f16},
      {"fp64", DType::f64},        {"float64", DType::f64}, {"double", DType::f64},  {"int64", DType::i64},
      {"long", DType::i64},        {"int32", DType::i32},   {"uint8", DType::u8},    {"bool", DType::boolean},
      {"boolean", DType::boolean}, {"uint64", DType::u64},  {"u8", DType::u8},
  }};
  for (const auto& [name, type] : kNames) {
    if (name == text) return type;
  }
  return std::nullopt;
}

}  // namespace ullage
