#include "engines/pytorch/transformers_modules.h"

#include "tensor/autocast.h"
#include "tensor/checkpoint.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::call;
using t::Dims;
using t::Op;
using t::Tensor;

Tensor TransformersModules::embedding(const model::Embedding& module, Tensor ids) {
  const t::Scope named(context_, scope(module.weight));
  return t::embedding(parameter(module.weight), std::move(ids));
}

Tensor TransformersModules::linear(const model::Linear& module, Tensor x) {
  const t::Scope named(context_, scope(module.weight));
  Tensor bias = optional_parameter(module.bias);
  if (module.stored_in_out) return t::conv1d_addmm(std::move(x), parameter(module.weight), std::move(bias));
  return t::linear(std::move(x), parameter(module.weight), std::move(bias));
}

// LlamaRMSNorm: in fp32, back to the input's type, then times the weight. The fp32 copy and the variance live until it
// returns.
Tensor TransformersModules::norm(const model::Norm& module, Tensor x) {
  const t::Scope named(context_, scope(module.weight));
  if (module.kind == model::NormKind::layer) {
    return t::layer_norm(std::move(x), parameter(module.weight), optional_parameter(module.bias));
  }
  const DType dtype = x.dtype();
  Tensor hidden = t::to(std::move(x), DType::f32);
  Tensor squares = t::pow_scalar(hidden);
  const Tensor variance = t::mean_last(std::move(squares));
  Tensor shifted = t::add_scalar(variance);
  Tensor inverse = t::rsqrt(std::move(shifted));
  hidden = t::mul(hidden, std::move(inverse));
  Tensor back = t::to(hidden, dtype);
  return t::mul(parameter(module.weight), std::move(back));
}

namespace {

// 0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))
Tensor gelu_new(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor half = t::mul_scalar(x);
  Tensor cube = t::pow_scalar(x);
  cube = t::mul_scalar(std::move(cube));
  Tensor inner = t::add(x, std::move(cube));
  inner = t::mul_scalar(std::move(inner));
  inner = t::tanh(std::move(inner));
  inner = t::add_scalar(std::move(inner));
  return t::mul(std::move(half), std::move(inner));
}

}  // namespace

Tensor TransformersModules::activation(model::Activation kind, Tensor x) {
  switch (kind) {
    case model::Activation::silu: return t::silu(std::move(x));
    case model::Activation::gelu:
    case model::Activation::gelu_tanh: return t::gelu(std::move(x));
    case model::Activation::gelu_new: return gelu_new(std::move(x));
    case model::Activation::relu: return t::relu(std::move(x));
    case model::Activation::tanh: return t::tanh(std::move(x));
    case model::Activation::sigmoid: return t::sigmoid(std::move(x));
    case model::Activation::linear: return x;
  }
  return x;
}

Tensor TransformersModules::dropout(double p, Tensor x) { return t::dropout(std::move(x), p); }

Tensor TransformersModules::mlp(const model::Mlp& module, Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor hidden;
  if (module.gated) {
    Tensor gate = call([&](Tensor h) { return linear(module.gate, h); }, x);
    gate = call([&](Tensor h) { return activation(module.activation, h); }, std::move(gate));
    Tensor up = call([&](Tensor h) { return linear(module.up, h); }, x);
    hidden = t::mul(std::move(gate), std::move(up));
  } else {
    hidden = call([&](Tensor h) { return linear(module.up, h); }, x);
    hidden = call([&](Tensor h) { return activation(module.activation, h); }, std::move(hidden));
  }
  return call([&](Tensor h) { return linear(module.down, h); }, std::move(hidden));
}

Tensor TransformersModules::position_ids(const Tensor& hidden) {
  Tensor positions = t::empty(context_, Op::arange, {hidden.size(1)}, DType::i64);
  positions = t::add_scalar(std::move(positions));
  return t::unsqueeze(std::move(positions), 0);
}

// What dynamic and long RoPE look at before each forward: the highest position, compared with the limits they know. A
// long RoPE then drops the copy of its frequencies in favour of the original. (modeling_rope_utils.py)
void TransformersModules::update_frequencies(const model::Rotary& module, const Tensor& position_ids) {
  const bool dynamic = module.type.find("dynamic") != std::string::npos;
  if (!dynamic && module.type != "longrope") return;
  Tensor highest = t::empty(context_, Op::maximum, {}, position_ids.dtype());
  const Tensor length = t::add_scalar(std::move(highest));
  t::empty(context_, Op::compare, {}, DType::boolean);
  if (dynamic) t::empty(context_, Op::compare, {}, DType::boolean);
  else state_.drop_rotary_copy();
}

// LlamaRotaryEmbedding, without gradient: angles are a batched product, cos and sin are scaled and cast.
model::RotaryTables TransformersModules::rotary(const model::Rotary& module, const Tensor& hidden,
                                                Tensor position_ids_in) {
  const t::NoGrad no_grad(context_);
  const t::Scope named(context_, context_.intern("rotary_emb"));
  const Tensor ids = std::move(position_ids_in);
  update_frequencies(module, ids);
  const t::AutocastRegion off(context_, {});
  const Tensor& frequencies = state_.rotary_frequencies();
  Tensor expanded = t::unsqueeze(frequencies, 0);
  expanded = t::unsqueeze(std::move(expanded), 2);
  Tensor positions = t::unsqueeze(ids, 1);
  positions = t::to(std::move(positions), DType::f32);
  Tensor angles = t::matmul(expanded, positions);
  angles = t::transpose(std::move(angles), 1, 2);
  const Tensor both = t::cat({angles, angles}, -1);
  Tensor cos = t::cos(both);
  cos = t::mul_scalar(std::move(cos));
  Tensor sin = t::sin(both);
  sin = t::mul_scalar(std::move(sin));
  model::RotaryTables tables;
  tables.cos = t::to(cos, hidden.dtype());
  tables.sin = t::to(sin, hidden.dtype());
  return tables;
}

namespace {

Tensor rotate_half(Tensor x_in) {
  const Tensor x = std::move(x_in);
  const std::int64_t dim = x.size(-1);
  const Tensor first = t::slice(x, -1, 0, dim / 2);
  const Tensor second = t::slice(x, -1, dim / 2, dim);
  Tensor negated = t::neg(second);
  return t::cat({std::move(negated), first}, -1);
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  Tensor straight = t::mul(x, cos);
  Tensor turned = rotate_half(x);
  turned = t::mul(std::move(turned), sin);
  return t::add(std::move(straight), std::move(turned));
}

}  // namespace

// The old query and key live until both rotated ones exist.
void TransformersModules::apply_rotary(Tensor& query, Tensor& key, const model::RotaryTables& tables) {
  const Tensor cos = t::unsqueeze(tables.cos, 1);
  const Tensor sin = t::unsqueeze(tables.sin, 1);
  Tensor rotated_query = rotate(query, cos, sin);
  Tensor rotated_key = rotate(key, cos, sin);
  query = std::move(rotated_query);
  key = std::move(rotated_key);
}

Tensor TransformersModules::layer(std::int64_t number, t::Region region, Tensor hidden_in, Tensor extra_in) {
  Tensor hidden = std::move(hidden_in);
  Tensor extra = std::move(extra_in);
  const t::Restore<std::int16_t> layer(context_.layer, static_cast<std::int16_t>(number));
  context_.begin_section(context_.layer);
  Tensor out;
  if (options_.recompute == Recompute::none || !context_.grad_enabled) {
    out = region(std::move(hidden), std::move(extra));
  } else if (options_.recompute_reentrant) {
    out = t::checkpoint_reentrant(context_, std::move(region), std::move(hidden), std::move(extra));
  } else {
    out = t::checkpoint(context_, std::move(region), std::move(hidden), std::move(extra));
  }
  return out;
}

// ForCausalLMLoss: logits in fp32, labels shifted by padding one and dropping the first.
Tensor TransformersModules::causal_lm_loss(Tensor logits_in, Tensor labels_in) {
  Tensor logits = std::move(logits_in);
  Tensor labels = std::move(labels_in);
  const t::Scope named(context_, context_.intern("loss"));
  const std::int64_t vocab = logits.size(-1);
  logits = t::to(std::move(logits), DType::f32);
  labels = t::pad_last(std::move(labels), 1);
  Tensor shifted = t::slice(labels, -1, 1, labels.size(-1));
  shifted = t::contiguous(std::move(shifted));
  logits = t::view(std::move(logits), {-1, vocab});
  shifted = t::view(std::move(shifted), {-1});
  return t::cross_entropy(logits, shifted);
}

}  // namespace ullage::engines::pytorch
