// LitGPT's norms and adapters (litgpt/model.py, litgpt/lora.py).
#include "engines/pytorch/litgpt.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::call;
using t::Tensor;

namespace {

// x over the root of the mean of x * x, all in x's type; what is bound on the way lives as long as the norm runs.
struct Normalised {
  Tensor x;
  Tensor mean;
  Tensor out;
};

Normalised normalise(Tensor x_in, bool mean_keeps_input) {
  Normalised n;
  n.x = std::move(x_in);
  {
    Tensor squares = t::mul(n.x, n.x);
    n.mean = t::mean_last(std::move(squares), mean_keeps_input);
  }
  Tensor shifted = t::add_scalar(n.mean);
  Tensor inverse = t::rsqrt(std::move(shifted));
  n.out = t::mul(n.x, std::move(inverse));
  return n;
}

Tensor rms_norm(const Choices& choices, Tensor x_in, Tensor weight_in, bool one_plus) {
  Tensor x = std::move(x_in);
  Tensor weight = std::move(weight_in);
  const DType dtype = x.dtype();
  if (choices.rms == RmsForm::own_type) {
    const Normalised n = normalise(std::move(x), choices.mean_keeps_input);
    return t::mul(weight, n.out);
  }
  Normalised n = normalise(t::to(std::move(x), DType::f32), choices.mean_keeps_input);
  if (choices.rms == RmsForm::products) {
    n.out = t::to(n.out, dtype);
    if (one_plus) weight = t::add_scalar(std::move(weight));
    return t::mul(n.out, std::move(weight));
  }
  if (one_plus) weight = t::add_scalar(weight);
  Tensor weighted;
  {
    Tensor in_fp32 = t::to(weight, DType::f32);
    weighted = t::mul(n.out, std::move(in_fp32));
  }
  return t::to(std::move(weighted), dtype);
}

}  // namespace

Tensor LitGptModules::norm(const model::Norm& module, Tensor x) {
  const t::Scope named(context(), scope(module.weight));
  if (module.kind == model::NormKind::layer)
    return t::layer_norm(std::move(x), parameter(module.weight), parameter(module.bias));
  return rms_norm(choices(), std::move(x), parameter(module.weight), module.kind == model::NormKind::rms_one_plus);
}

// AdapterV2Linear.forward: what it adds is registered right before the product's own weight.
Tensor LitGptModules::product(const model::Linear& module, Tensor x_in) {
  const Tensor x = std::move(x_in);
  if (options().llama_adapter != 2) return plain_linear(module, x);
  const model::ParameterRef bias{module.weight.index - 2, module.weight.in_layer};
  const model::ParameterRef scale{module.weight.index - 1, module.weight.in_layer};
  Tensor shifted;
  {
    Tensor made = call([&](Tensor h) { return plain_linear(module, std::move(h)); }, x);
    const t::Scope named(context(), scope(module.weight));
    shifted = t::add(std::move(made), parameter(bias));
  }
  return t::mul(parameter(scale), std::move(shifted));
}

// LoRALinear.forward.
Tensor LitGptModules::update_of(const Adapter& adapter, Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor update = call([&](Tensor h) { return t::dropout(std::move(h), options().lora_dropout); }, x);
  Tensor turned = t::transpose(adapter.a, 0, 1);
  update = t::matmul(std::move(update), std::move(turned));
  turned = t::transpose(adapter.b, 0, 1);
  update = t::matmul(std::move(update), std::move(turned));
  return t::mul_scalar(std::move(update));
}

Tensor LitGptModules::linear(const model::Linear& module, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const Adapter* adapter = state().adapter(module.weight, context().layer);
  if (adapter == nullptr) return product(module, x);
  const Tensor pretrained = call([&](Tensor h) { return plain_linear(module, std::move(h)); }, x);
  const t::Scope named(context(), scope(module.weight));
  const Tensor update = update_of(*adapter, x);
  return t::add(pretrained, update);
}

namespace {

// torch.nn.functional.conv1d with windows of one; x [batch, channels, length], weight [out, channels / groups].
Tensor conv1d(Tensor x, Tensor weight, std::int64_t groups) {
  Tensor window = t::unsqueeze(std::move(weight), -1);
  window = t::unsqueeze(std::move(window), -1);
  Tensor row = t::unsqueeze(std::move(x), 2);
  Tensor out = t::conv2d(std::move(row), std::move(window), {}, {1, 0, groups});
  return t::squeeze(std::move(out), 2);
}

// Rows of the parts that adapters change, in their order.
std::vector<std::int64_t> changed_rows(const model::Attention& a, std::uint8_t parts) {
  std::vector<std::int64_t> rows;
  if ((parts & model::kQueryPart) != 0) rows.push_back(a.heads * a.head_dim);
  if ((parts & model::kKeyPart) != 0) rows.push_back(a.kv_heads * a.head_dim);
  if ((parts & model::kValuePart) != 0) rows.push_back(a.kv_heads * a.head_dim);
  return rows;
}

// LoRAQKVLinear.conv1d: [batch, parts x rank, length] times each part's own factor.
Tensor times_b(const model::Attention& a, const Tensor& b, const std::vector<std::int64_t>& rows, Tensor low_in) {
  const Tensor low = std::move(low_in);
  const auto parts = static_cast<std::int64_t>(rows.size());
  if (a.heads == a.kv_heads) return conv1d(low, b, parts);
  std::vector<Tensor> shares = t::split(low, low.size(1) / parts, 1);
  std::vector<Tensor> factors = t::split(b, rows, 0);
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < rows.size(); ++i) products.push_back(conv1d(shares[i], factors[i], 1));
  return t::cat(std::move(products), 1);
}

constexpr std::size_t kAllParts = 3;

// LoRAQKVLinear.zero_pad: [batch, length, changed rows] with zeros for the rows of other parts.
Tensor padded(const Choices& choices, std::int64_t width, std::size_t parts, Tensor update_in, const Tensor& indices) {
  Tensor update = std::move(update_in);
  if (parts == kAllParts) return update;
  t::Context& context = update.context();
  const std::int64_t batch = update.size(0);
  const std::int64_t length = update.size(1);
  const std::int64_t rows = update.size(2);
  if (!choices.pads_by_copy) {
    const Tensor zeros = t::empty(context, t::Op::zeros, {batch, length, width}, update.dtype());
    Tensor columns = indices;
    if (choices.clones_indices) columns = t::clone(indices, indices.strides());
    return t::index_copy_last(zeros, std::move(columns), update, true);
  }
  update = t::transpose(update, 0, 1);
  Tensor result = t::empty(context, t::Op::zeros, {length, batch, width}, update.dtype());
  result = t::view(std::move(result), {-1, width});
  {
    Tensor columns = t::empty(context, t::Op::cast, {rows}, DType::i64);  // from the host
    Tensor flat = t::reshape(update, {-1, rows});
    result = t::index_copy_last(result, std::move(columns), std::move(flat), false);
  }
  result = t::view(std::move(result), {length, batch, width});
  return t::transpose(std::move(result), 0, 1);
}

}  // namespace

// LoRAQKVLinear.forward.
Tensor LitGptModules::qkv(const model::Attention& module, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const Adapter* adapter = state().adapter(module.qkv.weight, context().layer);
  if (adapter == nullptr) return product(module.qkv, x);
  const Tensor pretrained = call([&](Tensor h) { return plain_linear(module.qkv, std::move(h)); }, x);
  const t::Scope named(context(), scope(module.qkv.weight));
  const std::vector<std::int64_t> rows = changed_rows(module, options().tuning.parts);
  Tensor low = call([&](Tensor h) { return t::dropout(std::move(h), options().lora_dropout); }, x);
  low = t::linear(std::move(low), adapter->a, {});
  Tensor turned = t::transpose(low, -2, -1);
  Tensor high = times_b(module, adapter->b, rows, std::move(turned));
  high = t::transpose(std::move(high), -2, -1);
  const std::int64_t width = (module.heads + 2 * module.kv_heads) * module.head_dim;
  const bool has_indices = rows.size() < kAllParts && !choices().pads_by_copy;
  Tensor update = padded(choices(), width, rows.size(), high, has_indices ? buffer(0) : Tensor{});
  const Tensor scaled = t::mul_scalar(std::move(update));
  return t::add(pretrained, scaled);
}

}  // namespace ullage::engines::pytorch
