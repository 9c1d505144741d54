// Norms as the model files of transformers 5.12 write them.
#include "engines/pytorch/transformers_modules.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Tensor;

namespace {

// x / root of the mean square, in fp32.
Tensor normalise(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor squares = t::pow_scalar(x);
  Tensor variance = t::mean_last(std::move(squares));
  variance = t::add_scalar(std::move(variance));
  Tensor inverse = t::rsqrt(std::move(variance));
  return t::mul(x, std::move(inverse));
}

// LlamaRMSNorm and OLMo 2's, up to the weight. The fp32 copy and the variance live until it returns.
Tensor rms_norm(Tensor x, Tensor weight, bool cast_last) {
  const DType dtype = x.dtype();
  Tensor hidden = t::to(std::move(x), DType::f32);
  Tensor squares = t::pow_scalar(hidden);
  const Tensor variance = t::mean_last(std::move(squares));
  Tensor shifted = t::add_scalar(variance);
  Tensor inverse = t::rsqrt(std::move(shifted));
  hidden = t::mul(hidden, std::move(inverse));
  if (cast_last) {
    Tensor weighted = t::mul(std::move(weight), hidden);
    return t::to(std::move(weighted), dtype);
  }
  Tensor back = t::to(hidden, dtype);
  return t::mul(std::move(weight), std::move(back));
}

// GemmaRMSNorm.
Tensor rms_norm_one_plus(Tensor x, Tensor weight) {
  const DType dtype = x.dtype();
  Tensor in_fp32 = t::to(std::move(x), DType::f32);
  Tensor output = normalise(std::move(in_fp32));
  Tensor factor = t::to(std::move(weight), DType::f32);
  factor = t::add_scalar(std::move(factor));
  output = t::mul(output, std::move(factor));
  return t::to(output, dtype);
}

// T5LayerNorm.
Tensor rms_norm_promoted(Tensor x, Tensor weight) {
  Tensor in_fp32 = t::to(x, DType::f32);
  Tensor squares = t::pow_scalar(std::move(in_fp32));
  const Tensor variance = t::mean_last(std::move(squares));
  Tensor inverse = t::add_scalar(variance);
  inverse = t::rsqrt(std::move(inverse));
  x = t::mul(x, std::move(inverse));
  if (is_half(weight.dtype())) x = t::to(x, weight.dtype());
  return t::mul(std::move(weight), x);
}

// OlmoLayerNorm.
Tensor layer_norm_fp32(Tensor x) {
  const DType dtype = x.dtype();
  Tensor in_fp32 = t::to(std::move(x), DType::f32);
  Tensor output = t::layer_norm(std::move(in_fp32), {}, {});
  return t::to(std::move(output), dtype);
}

// CohereLayerNorm.
Tensor layer_norm_composed(Tensor x, Tensor weight) {
  const DType dtype = x.dtype();
  Tensor hidden = t::to(std::move(x), DType::f32);
  const Tensor mean = t::mean_last(hidden);
  Tensor squares = t::sub(hidden, mean);
  squares = t::pow_scalar(std::move(squares));
  const Tensor variance = t::mean_last(std::move(squares));
  Tensor centred = t::sub(hidden, mean);
  Tensor inverse = t::add_scalar(variance);
  inverse = t::rsqrt(std::move(inverse));
  hidden = t::mul(std::move(centred), std::move(inverse));
  Tensor factor = t::to(std::move(weight), DType::f32);
  hidden = t::mul(std::move(factor), hidden);
  return t::to(hidden, dtype);
}

}  // namespace

Tensor TransformersModules::norm(const model::Norm& module, Tensor x) {
  const t::Scope named(context_, scope(module.weight));
  switch (module.kind) {
    case model::NormKind::rms: return rms_norm(std::move(x), parameter(module.weight), false);
    case model::NormKind::rms_cast_last: return rms_norm(std::move(x), parameter(module.weight), true);
    case model::NormKind::rms_one_plus: return rms_norm_one_plus(std::move(x), parameter(module.weight));
    case model::NormKind::rms_promoted: return rms_norm_promoted(std::move(x), parameter(module.weight));
    case model::NormKind::layer_fp32: return layer_norm_fp32(std::move(x));
    case model::NormKind::layer_composed: return layer_norm_composed(std::move(x), parameter(module.weight));
    case model::NormKind::layer: break;
  }
  return t::layer_norm(std::move(x), optional_parameter(module.weight), optional_parameter(module.bias));
}

}  // namespace ullage::engines::pytorch
