// Sources: transformers' integrations/finegrained_fp8.py (blocks of 128 x 128, weight_scale_inv in fp32) and
// mxfp4.py (blocks and scales of 32); bitsandbytes 0.49 nn/modules.py and functional.py (CB with SCB; packed weights,
// absmax of 64, its own absmax of 256 with an offset, code tables, the packed state); AutoAWQ's WQLinear_GEMM (qweight
// [in, out/8], qzeros, scales in fp16); AutoGPTQ's QuantLinear (qweight [in/8, out], qzeros, scales, g_idx);
// compressed-tensors compressors (weight_packed, weight_scale, weight_zero_point, weight_shape); NVIDIA modelopt's
// export (weight, weight_scale of 16, weight_scale_2, input_scale); mlx nn.QuantizedLinear (weight, scales, biases).
#include "model/quantisation_formats.h"

#include <fmt/core.h>

#include "base/bytes.h"

namespace ullage::model {
namespace {

std::int64_t divided_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

WeightPart part(std::string suffix, std::string dtype, std::int64_t elements, std::int64_t element_bytes) {
  return {std::move(suffix), std::move(dtype), elements, multiply_saturated(elements, element_bytes)};
}

std::int64_t groups_of(const WeightScheme& s, std::int64_t columns) {
  return s.group == 0 ? 1 : divided_up(columns, s.group);
}

std::vector<WeightPart> fp8(const WeightScheme& s, std::int64_t rows, std::int64_t columns, DType dtype) {
  std::vector<WeightPart> out{part(".weight", "fp8", rows * columns, 1)};
  if (s.block_rows > 0) {
    const std::int64_t blocks = divided_up(rows, s.block_rows) * divided_up(columns, s.block_columns);
    out.push_back(part(".weight_scale_inv", "fp32", blocks, 4));
  } else if (s.by_row && s.scales_in_model_dtype) {
    out.push_back(plain_part(".weight_scale", rows, dtype));
  } else {
    out.push_back(part(".weight_scale", "fp32", s.by_row ? rows : 1, 4));
  }
  if (s.static_inputs) out.push_back(part(".input_scale", "fp32", 1, 4));
  return out;
}

std::vector<WeightPart> int8_rows(const WeightScheme& s, std::int64_t rows, std::int64_t columns, DType dtype) {
  if (s.scales_in_model_dtype)
    return {part(".weight", "int8", rows * columns, 1), plain_part(".weight_scale", rows, dtype)};
  return {part(".weight", "int8", rows * columns, 1), part(".SCB", "fp32", rows, 4)};
}

// The packed state is JSON: type, block size, type and shape before, and of nested scales their block, type and offset.
std::string quant_state(const WeightScheme& s, std::int64_t rows, std::int64_t columns, DType dtype) {
  const std::string_view type = dtype == DType::f16 ? "float16" : dtype == DType::f32 ? "float32" : "bfloat16";
  return fmt::format(R"({{"quant_type": "{}", "blocksize": 64, "dtype": "{}", "shape": [{}, {}]}})",
                     s.name.substr(0, 3), type, rows, columns);
}

std::vector<WeightPart> bnb_4bit(const WeightScheme& s, std::int64_t rows, std::int64_t columns, DType dtype) {
  constexpr std::int64_t kBlock = 64, kNestedBlock = 256, kCodes = 16, kNestedCodes = 256;
  const std::int64_t weights = rows * columns;
  const std::int64_t blocks = divided_up(weights, kBlock);
  std::vector<WeightPart> out{part(".weight", "uint8", divided_up(weights, 2), 1)};
  if (s.double_quantised) {
    out.push_back(part(".weight.absmax", "uint8", blocks, 1));
    out.push_back(part(".weight.nested_absmax", "fp32", divided_up(blocks, kNestedBlock), 4));
    out.push_back(part(".weight.nested_quant_map", "fp32", kNestedCodes, 4));
    out.push_back(part(".weight.nested_offset", "fp32", 1, 4));
  } else {
    out.push_back(part(".weight.absmax", "fp32", blocks, 4));
  }
  out.push_back(part(".weight.quant_map", "fp32", kCodes, 4));
  if (!s.double_quantised) {
    const auto length = static_cast<std::int64_t>(quant_state(s, rows, columns, dtype).size());
    out.push_back(part(".weight.quant_state", "uint8", length, 1));
  }
  return out;
}

std::vector<WeightPart> awq(const WeightScheme& s, std::int64_t rows, std::int64_t columns) {
  const std::int64_t in_integer = 32 / s.bits;
  const std::int64_t groups = groups_of(s, columns);
  return {part(".qweight", "int32", columns * (rows / in_integer), 4),
          part(".qzeros", "int32", groups * (rows / in_integer), 4), part(".scales", "fp16", groups * rows, 2)};
}

std::vector<WeightPart> gptq(const WeightScheme& s, std::int64_t rows, std::int64_t columns, bool has_bias) {
  const std::int64_t groups = groups_of(s, columns);
  std::vector<WeightPart> out{part(".qweight", "int32", columns * s.bits / 32 * rows, 4),
                              part(".qzeros", "int32", groups * (rows * s.bits / 32), 4),
                              part(".scales", "fp16", groups * rows, 2), part(".g_idx", "int32", columns, 4)};
  if (s.zero_biases && !has_bias) out.push_back(part(".bias", "fp16", rows, 2));
  return out;
}

std::vector<WeightPart> packed_int(const WeightScheme& s, std::int64_t rows, std::int64_t columns, DType dtype) {
  const std::int64_t in_integer = 32 / s.bits;
  const std::int64_t groups = groups_of(s, columns);
  std::vector<WeightPart> out{part(".weight_packed", "int32", rows * divided_up(columns, in_integer), 4),
                              plain_part(".weight_scale", rows * groups, dtype)};
  if (s.zeros) out.push_back(part(".weight_zero_point", "int32", divided_up(rows, in_integer) * groups, 4));
  out.push_back(part(".weight_shape", "int64", 2, 8));
  return out;
}

std::vector<WeightPart> nvfp4(const WeightScheme& s, std::int64_t rows, std::int64_t columns) {
  std::vector<WeightPart> out{part(".weight", "uint8", rows * divided_up(columns, 2), 1),
                              part(".weight_scale", "fp8", rows * divided_up(columns, s.group), 1),
                              part(".weight_scale_2", "fp32", 1, 4)};
  if (s.static_inputs) out.push_back(part(".input_scale", "fp32", 1, 4));
  return out;
}

std::vector<WeightPart> mxfp4(const WeightScheme& s, std::int64_t rows, std::int64_t columns) {
  return {part("_blocks", "uint8", rows * divided_up(columns, 2), 1),
          part("_scales", "uint8", rows * divided_up(columns, s.group), 1)};
}

std::vector<WeightPart> affine(const WeightScheme& s, std::int64_t rows, std::int64_t columns, DType dtype) {
  const std::int64_t groups = groups_of(s, columns);
  return {part(".weight", "uint32", rows * divided_up(columns * s.bits, 32), 4),
          plain_part(".scales", rows * groups, dtype), plain_part(".biases", rows * groups, dtype)};
}

}  // namespace

WeightPart plain_part(std::string suffix, std::int64_t elements, DType dtype) {
  return part(std::move(suffix), std::string(name_of(dtype)), elements, size_of(dtype));
}

bool can_store(const WeightScheme& s, std::int64_t rows, std::int64_t columns) {
  switch (s.format) {
    case WeightFormat::awq: return rows % (32 / s.bits) == 0 && (s.group == 0 || columns % s.group == 0);
    case WeightFormat::gptq: return columns * s.bits % 32 == 0 && rows * s.bits % 32 == 0;
    case WeightFormat::affine: return s.group > 0 && columns % s.group == 0;
    default: return true;
  }
}

std::vector<WeightPart> stored_matrix(const WeightScheme& s, std::int64_t rows, std::int64_t columns, DType dtype,
                                      bool has_bias) {
  switch (s.format) {
    case WeightFormat::fp8: return fp8(s, rows, columns, dtype);
    case WeightFormat::int8_rows: return int8_rows(s, rows, columns, dtype);
    case WeightFormat::bnb_4bit: return bnb_4bit(s, rows, columns, dtype);
    case WeightFormat::awq: return awq(s, rows, columns);
    case WeightFormat::gptq: return gptq(s, rows, columns, has_bias);
    case WeightFormat::packed_int: return packed_int(s, rows, columns, dtype);
    case WeightFormat::nvfp4: return nvfp4(s, rows, columns);
    case WeightFormat::mxfp4: return mxfp4(s, rows, columns);
    case WeightFormat::affine: return affine(s, rows, columns, dtype);
    case WeightFormat::plain: break;
  }
  return {plain_part(".weight", multiply_saturated(rows, columns), dtype)};
}

}  // namespace ullage::model
