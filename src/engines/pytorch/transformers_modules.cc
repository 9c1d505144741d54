#include "engines/pytorch/transformers_modules.h"

#include "tensor/checkpoint.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::call;
using t::Dims;
using t::Op;
using t::Tensor;

// With recompute the embedding's output is made to want a gradient, so that a checkpoint has an input that does
// (gradient_checkpointing_enable calls enable_input_require_grads).
Tensor TransformersModules::embedding(const model::Embedding& module, Tensor ids) {
  if (given_embeddings_ && state_.is_input_embedding(module.weight)) return given_embeddings_;
  const t::Scope named(context_, scope(module.weight));
  const Tensor& weight = parameter(module.weight);
  Tensor out = t::embedding(weight, std::move(ids));
  if (module.scale >= 0) {
    Tensor scale = t::to(state_.buffer(static_cast<std::size_t>(module.scale)), weight.dtype());
    out = t::mul(std::move(out), std::move(scale));
  }
  if (module.by_number) out = t::mul_scalar(std::move(out));
  // PEFT prepares the whole model where any part of it is checkpointed.
  const bool prepared = options_.recompute_vision && state_.adapted();
  if (state_.is_input_embedding(module.weight) && (checkpoints() || prepared)) want_gradient(out);
  return out;
}

// What the first module of a tower, or of another encoder, gives.
void TransformersModules::mark_input(const Tensor& x) {
  if (checkpoints() || options_.recompute_vision) want_gradient(x);
}

void TransformersModules::want_gradient(const Tensor& x) {
  if (!x.requires_grad()) x.impl()->leaf_requires_grad = true;
}

Tensor TransformersModules::linear(const model::Linear& module, Tensor x) {
  if (state_.is_head(module.weight)) {
    if (options_.loss == Loss::fused) return leave_to_loss(module, std::move(x));
    if (options_.loss_form == LossForm::kept) {
      Tensor logits = any_linear(module, std::move(x));
      return t::to(std::move(logits), DType::f32);
    }
  }
  return any_linear(module, std::move(x));
}

Tensor TransformersModules::any_linear(const model::Linear& module, Tensor x) {
  const Adapter* adapter = state_.adapter(module.weight, context_.layer);
  if (adapter == nullptr) return plain_linear(module, std::move(x));
  const Quantised* quantised = state_.quantised(module.weight, context_.layer);
  const bool gptq = quantised != nullptr && quantised->packed.group_of_row;
  if (quantised == nullptr || gptq) return adapted_linear(module, *adapter, std::move(x));
  if (quantised->packed.codes) return adapted_awq(module, *adapter, std::move(x));
  return adapted_quantised(module, *adapter, static_cast<bool>(quantised->four.packed), std::move(x));
}

// The loss itself will multiply by the head's weight. Logits of no width stand for those that are not made.
Tensor TransformersModules::leave_to_loss(const model::Linear& module, Tensor x) {
  Dims none = x.sizes();
  none[-1] = 0;
  const DType dtype = x.dtype();
  head_input_ = std::move(x);
  head_weight_ = parameter(module.weight);
  return context_.make(none, dtype);
}

Tensor TransformersModules::plain_linear(const model::Linear& module, Tensor x) {
  const t::Scope named(context_, scope(module.weight));
  const Quantised* quantised = state_.quantised(module.weight, context_.layer);
  if (quantised != nullptr) return quantised_linear(module, *quantised, std::move(x));
  Tensor bias = optional_parameter(module.bias);
  if (module.stored_in_out) return t::conv1d_addmm(std::move(x), parameter(module.weight), std::move(bias));
  if (!module.by_product) return t::linear(std::move(x), parameter(module.weight), std::move(bias));
  Tensor turned = t::transpose(parameter(module.weight), 0, 1);
  Tensor product = t::matmul(std::move(x), std::move(turned));
  if (bias) product = t::add(product, std::move(bias));
  return product;
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

Tensor quick_gelu(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor gate = t::mul_scalar(x);
  gate = t::sigmoid(std::move(gate));
  return t::mul(x, std::move(gate));
}

}  // namespace

Tensor TransformersModules::activation(model::Activation kind, Tensor x) {
  switch (kind) {
    case model::Activation::silu: return t::silu(std::move(x));
    case model::Activation::gelu:
    case model::Activation::gelu_tanh: return t::gelu(std::move(x));
    case model::Activation::gelu_new: return gelu_new(std::move(x));
    case model::Activation::quick_gelu: return quick_gelu(std::move(x));
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
  hidden = call([&](Tensor h) { return linear(module.down, h); }, std::move(hidden));
  return t::dropout(std::move(hidden), module.dropout);
}

// DynamicCache (cache_utils.py), which joins both to empty tensors of the key's type. A layer with a window has the
// window's width on the device, too.
void TransformersModules::cache(const model::Attention& module, Tensor& key, Tensor& value) {
  if (checkpoints()) return;
  if (module.window) cached_.push_back(t::empty(context_, Op::cast, {}, DType::i64));
  const Tensor none = context_.make({key.size(0), key.size(1), 0, key.size(3)}, key.dtype());
  Tensor keys = t::cat({none, key}, -2);
  Tensor values = t::cat({none, value}, -2);
  cached_.push_back(keys);
  cached_.push_back(values);
  key = std::move(keys);
  value = std::move(values);
}

void TransformersModules::drop_cache() {
  for (Tensor& tensor : cached_) tensor.reset();
  cached_.clear();
}

Tensor TransformersModules::layer(std::int64_t number, t::Region region, Tensor hidden_in, Tensor extra_in,
                                  Tensor* second) {
  Tensor hidden = std::move(hidden_in);
  Tensor extra = std::move(extra_in);
  const t::Restore<std::int16_t> layer(context_.layer, static_cast<std::int16_t>(number));
  context_.begin_section(context_.layer);
  t::RegionOutput out;
  const bool in_tower = options_.recompute_vision && number < state_.tower_layers();
  if (!(checkpoints() || in_tower) || !context_.grad_enabled) {
    out = region(std::move(hidden), std::move(extra));
  } else if (options_.recompute_reentrant) {
    out = t::checkpoint_reentrant(context_, std::move(region), std::move(hidden), std::move(extra));
  } else {
    out = t::checkpoint(context_, std::move(region), std::move(hidden), std::move(extra));
  }
  if (second != nullptr) *second = std::move(out.second);
  return std::move(out.hidden);
}

// LigerForCausalLMLoss (transformers/model/loss_utils.py): labels are shifted as below, the hidden states as they are.
Tensor TransformersModules::fused_loss(Tensor labels_in) {
  Tensor labels = std::move(labels_in);
  Tensor hidden = std::move(head_input_);
  const Tensor weight = std::move(head_weight_);
  labels = t::pad_last(std::move(labels), 1);
  Tensor shifted = t::slice(labels, -1, 1, labels.size(-1));
  shifted = t::contiguous(std::move(shifted));
  const std::int64_t width = hidden.size(-1);
  hidden = t::view(hidden, {-1, width});
  shifted = t::view(std::move(shifted), {-1});
  Tensor loss = t::fused_linear_cross_entropy(hidden, weight, shifted);
  return by_count(std::move(loss));
}

Tensor TransformersModules::causal_lm_loss(Tensor logits_in, Tensor labels_in) {
  Tensor logits = std::move(logits_in);
  Tensor labels = std::move(labels_in);
  const t::Scope named(context_, context_.intern("loss"));
  if (head_input_) logits.reset();
  return head_input_ ? fused_loss(std::move(labels)) : full_loss(std::move(logits), std::move(labels));
}

// fixed_cross_entropy: where targets were counted the loss is their sum, divided before the function forgets its names.
Tensor TransformersModules::by_count(Tensor loss_in) {
  Tensor loss = std::move(loss_in);
  counted_ = static_cast<bool>(target_count_);
  return counted_ ? t::div(std::move(loss), target_count_) : loss;
}

// Before labels were padded: logits without the last token, copied.
Tensor TransformersModules::sliced_loss(Tensor logits_in, Tensor labels_in) {
  Tensor logits = std::move(logits_in);
  const Tensor labels = std::move(labels_in);
  if (options_.loss_form == LossForm::sliced) logits = t::to(std::move(logits), DType::f32);
  const std::int64_t vocab = logits.size(-1);
  Tensor shifted = t::slice(logits, -2, 0, logits.size(-2) - 1);
  shifted = t::contiguous(std::move(shifted));
  Tensor targets = t::slice(labels, -1, 1, labels.size(-1));
  targets = t::contiguous(std::move(targets));
  shifted = t::view(std::move(shifted), {-1, vocab});
  targets = t::view(std::move(targets), {-1});
  Tensor loss = t::cross_entropy(shifted, targets);
  return by_count(std::move(loss));
}

// ForCausalLMLoss: logits in fp32, labels shifted by padding one and dropping the first.
Tensor TransformersModules::full_loss(Tensor logits_in, Tensor labels_in) {
  if (options_.loss_form != LossForm::padded) return sliced_loss(std::move(logits_in), std::move(labels_in));
  Tensor logits = std::move(logits_in);
  Tensor labels = std::move(labels_in);
  const std::int64_t vocab = logits.size(-1);
  logits = t::to(std::move(logits), DType::f32);
  labels = t::pad_last(std::move(labels), 1);
  Tensor shifted = t::slice(labels, -1, 1, labels.size(-1));
  shifted = t::contiguous(std::move(shifted));
  logits = t::view(std::move(logits), {-1, vocab});
  shifted = t::view(std::move(shifted), {-1});
  Tensor loss = t::cross_entropy(logits, shifted);
  return by_count(std::move(loss));
}

}  // namespace ullage::engines::pytorch
