#include "model/ggml_type.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/lines.h"

namespace ullage::model {
namespace {

// ggml-org/llama.cpp, gguf-py/gguf/constants.py, GGML_QUANT_SIZES; ggml/src/ggml-common.h asserts the same sizes.
constexpr std::array kLayouts{
    GgmlLayout{GgmlType::f32, "F32", 1, 4},
    GgmlLayout{GgmlType::f16, "F16", 1, 2},
    GgmlLayout{GgmlType::q4_0, "Q4_0", 32, 18},
    GgmlLayout{GgmlType::q4_1, "Q4_1", 32, 20},
    GgmlLayout{GgmlType::q5_0, "Q5_0", 32, 22},
    GgmlLayout{GgmlType::q5_1, "Q5_1", 32, 24},
    GgmlLayout{GgmlType::q8_0, "Q8_0", 32, 34},
    GgmlLayout{GgmlType::q8_1, "Q8_1", 32, 36},
    GgmlLayout{GgmlType::q2_k, "Q2_K", 256, 84},
    GgmlLayout{GgmlType::q3_k, "Q3_K", 256, 110},
    GgmlLayout{GgmlType::q4_k, "Q4_K", 256, 144},
    GgmlLayout{GgmlType::q5_k, "Q5_K", 256, 176},
    GgmlLayout{GgmlType::q6_k, "Q6_K", 256, 210},
    GgmlLayout{GgmlType::q8_k, "Q8_K", 256, 292},
    GgmlLayout{GgmlType::iq2_xxs, "IQ2_XXS", 256, 66},
    GgmlLayout{GgmlType::iq2_xs, "IQ2_XS", 256, 74},
    GgmlLayout{GgmlType::iq3_xxs, "IQ3_XXS", 256, 98},
    GgmlLayout{GgmlType::iq1_s, "IQ1_S", 256, 50},
    GgmlLayout{GgmlType::iq4_nl, "IQ4_NL", 32, 18},
    GgmlLayout{GgmlType::iq3_s, "IQ3_S", 256, 110},
    GgmlLayout{GgmlType::iq2_s, "IQ2_S", 256, 82},
    GgmlLayout{GgmlType::iq4_xs, "IQ4_XS", 256, 136},
    GgmlLayout{GgmlType::i8, "I8", 1, 1},
    GgmlLayout{GgmlType::i16, "I16", 1, 2},
    GgmlLayout{GgmlType::i32, "I32", 1, 4},
    GgmlLayout{GgmlType::i64, "I64", 1, 8},
    GgmlLayout{GgmlType::f64, "F64", 1, 8},
    GgmlLayout{GgmlType::iq1_m, "IQ1_M", 256, 56},
    GgmlLayout{GgmlType::bf16, "BF16", 1, 2},
    GgmlLayout{GgmlType::tq1_0, "TQ1_0", 256, 54},
    GgmlLayout{GgmlType::tq2_0, "TQ2_0", 256, 66},
    GgmlLayout{GgmlType::mxfp4, "MXFP4", 32, 17},
    GgmlLayout{GgmlType::nvfp4, "NVFP4", 64, 36},
    GgmlLayout{GgmlType::q1_0, "Q1_0", 128, 18},
    GgmlLayout{GgmlType::q2_0, "Q2_0", 64, 18},
};

template <class Matches>
const GgmlLayout* find(Matches matches) {
  const auto found = std::find_if(kLayouts.begin(), kLayouts.end(), matches);
  return found == kLayouts.end() ? nullptr : &*found;
}

}  // namespace

std::span<const GgmlLayout> ggml_layouts() { return kLayouts; }

const GgmlLayout& layout_of(GgmlType type) {
  return *find([&](const GgmlLayout& layout) { return layout.type == type; });
}

const GgmlLayout* find_ggml_type(std::uint32_t number) {
  return find([&](const GgmlLayout& layout) { return static_cast<std::uint32_t>(layout.type) == number; });
}

const GgmlLayout* find_ggml_type(std::string_view name) {
  return find([&](const GgmlLayout& layout) { return compare_ignoring_case(layout.name, name) == 0; });
}

std::optional<std::int64_t> row_bytes(const GgmlLayout& layout, std::int64_t elements) {
  if (elements < 0 || elements % layout.block != 0) return std::nullopt;
  return multiply_saturated(elements / layout.block, layout.bytes_of_block);
}

}  // namespace ullage::model
