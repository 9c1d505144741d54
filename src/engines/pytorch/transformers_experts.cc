// How transformers 5.12 runs the experts of a mixture (integrations/moe.py): as products of groups of rows, which is
// the default, or as one batched product with the weights gathered for every row.
#include "engines/pytorch/transformers_modules.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::call;
using t::Dims;
using t::Op;
using t::Tensor;

// What routers compute their logits by.
Tensor TransformersModules::linear_in_fp32(const model::Linear& module, Tensor x_in) {
  const t::Scope named(context_, scope(module.weight));
  const Tensor x = std::move(x_in);
  Tensor wide = t::to(x, DType::f32);
  Tensor weight = t::to(parameter(module.weight), DType::f32);
  return t::linear(std::move(wide), std::move(weight), {});
}

// gate and up stay bound while their product is made.
Tensor TransformersModules::gate_experts(const model::Experts& module, Tensor gate_up_in) {
  const Tensor gate_up = std::move(gate_up_in);
  const std::int64_t width = gate_up.size(-1) / 2;
  if (module.gating == model::ExpertGating::halves) {
    std::vector<Tensor> parts = t::split(gate_up, width, -1);
    const Tensor gate = std::move(parts[0]);
    const Tensor up = std::move(parts[1]);
    Tensor active = call([&](Tensor x) { return activation(module.activation, x); }, gate);
    return t::mul(std::move(active), up);
  }
  // Gate and up in turns, both clamped: gate * sigmoid(alpha * gate) * (up + 1) (gpt-oss).
  Tensor gate = t::slice(gate_up, -1, 0, 2 * width, 2);
  Tensor up = t::slice(gate_up, -1, 1, 2 * width, 2);
  gate = t::clamp_above(gate);
  up = t::clamp(up);
  Tensor slope = t::mul_scalar(gate);
  slope = t::sigmoid(std::move(slope));
  const Tensor glu = t::mul(gate, std::move(slope));
  Tensor shifted = t::add_scalar(up);
  return t::mul(std::move(shifted), glu);
}

// x [rows, in] in groups that end at `offsets`, each times its expert's matrix; a weight is [experts, out, in] unless
// it is stored transposed.
Tensor TransformersModules::grouped_linear(const model::Experts& module, model::ParameterRef weight, Tensor x_in,
                                           const Tensor& offsets, const Tensor& bias) {
  const Tensor x = std::move(x_in);
  Tensor matrices = parameter(weight);
  if (!module.stored_in_out) matrices = t::transpose(std::move(matrices), -2, -1);
  Tensor converted = t::to(x, matrices.dtype());
  Tensor out = t::grouped_mm(std::move(converted), std::move(matrices), offsets);
  if (bias) t::iadd(out, bias);
  return out;
}

// grouped_mm_experts_forward. Its locals, the sorted ids and the masks among them, live until it returns.
Tensor TransformersModules::grouped_experts(const model::Experts& module, Tensor hidden_in, Tensor index_in,
                                            Tensor weights_in) {
  const Tensor hidden = std::move(hidden_in);
  const Tensor index = std::move(index_in);
  const Tensor weights = std::move(weights_in);
  const std::int64_t tokens = hidden.size(0);
  const std::int64_t top_k = index.size(-1);
  const std::int64_t pairs = tokens * top_k;
  const Tensor flat_weights = t::reshape(weights, {-1});
  const t::Ranked sorted = t::sort(t::reshape(index, {-1}));
  Tensor rows;
  {
    Tensor owners = t::empty(context_, Op::floor_divide, {pairs}, DType::i64);
    rows = t::index_rows(hidden, std::move(owners));
  }
  const Tensor row_weights = t::index_rows(flat_weights, sorted.indices);
  const Tensor counted = t::to(sorted.values, context_.policy().cuda ? DType::i32 : DType::f32);
  const Tensor counts = t::empty(context_, Op::histc, {module.count}, counted.dtype());
  const Tensor offsets = t::empty(context_, Op::cumsum, {module.count}, DType::i32);
  const Tensor sentinels = t::unsqueeze(t::empty(context_, Op::compare, {pairs}, DType::boolean), -1);
  Tensor biases;
  if (module.gate_up_bias) biases = t::index_rows(parameter(module.gate_up_bias), sorted.values);
  t::masked_fill_in_place(rows, sentinels);
  Tensor out = grouped_linear(module, module.gate_up, rows, offsets, biases);
  out = gate_experts(module, out);
  if (module.down_bias) biases = t::index_rows(parameter(module.down_bias), sorted.values);
  out = grouped_linear(module, module.down, out, offsets, biases);
  Tensor weighted = t::mul(out, t::unsqueeze(row_weights, -1));
  t::masked_fill_in_place(weighted, sentinels);
  const Tensor inverse = t::empty(context_, Op::empty, {pairs}, DType::i64);
  t::empty(context_, Op::arange, {pairs}, DType::i64);
  weighted = t::index_rows(weighted, inverse);
  const Tensor sum = t::sum_dim(t::view(weighted, {tokens, top_k, -1}), 1, false);
  return t::to(sum, hidden.dtype());
}

// x [rows, in] times a matrix of its own for each row.
Tensor TransformersModules::batched_linear(const model::Experts& module, Tensor x_in, Tensor weight_in,
                                           const Tensor& bias) {
  const Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  const int at = module.stored_in_out ? 1 : 2;
  const Tensor column = t::unsqueeze(x, at == 1 ? 1 : -1);
  const Tensor out = at == 1 ? t::matmul(column, weight) : t::matmul(weight, column);
  // The bias is added in place to what is a view of the product.
  if (bias) t::add_to_squeezed(out, at, bias);
  return t::squeeze(out, at);
}

// batched_mm_experts_forward.
Tensor TransformersModules::batched_experts(const model::Experts& module, Tensor hidden_in, Tensor index_in,
                                            Tensor weights_in) {
  const Tensor hidden = std::move(hidden_in);
  const Tensor index = std::move(index_in);
  const Tensor weights = std::move(weights_in);
  const std::int64_t tokens = hidden.size(0);
  const std::int64_t top_k = index.size(-1);
  const Tensor rows = t::repeat_rows(hidden, top_k);
  const Tensor flat_weights = t::reshape(weights, {-1});
  const Tensor ids = t::empty(context_, Op::clamp, {tokens * top_k}, DType::i64);
  const auto selected = [&](model::ParameterRef ref) { return ref ? t::index_rows(parameter(ref), ids) : Tensor{}; };
  Tensor chosen = selected(module.gate_up);
  Tensor biases = selected(module.gate_up_bias);
  Tensor out = batched_linear(module, rows, chosen, biases);
  out = gate_experts(module, out);
  chosen = selected(module.down);
  biases = selected(module.down_bias);
  out = batched_linear(module, out, chosen, biases);
  const Tensor weighted = t::mul(out, t::unsqueeze(flat_weights, -1));
  const Tensor sum = t::sum_dim(t::view(weighted, {tokens, top_k, -1}), 1, false);
  return t::to(sum, hidden.dtype());
}

Tensor TransformersModules::experts(const model::Experts& module, Tensor hidden, Tensor index, Tensor weights) {
  const t::Scope named(context_, scope(module.gate_up));
  if (module.run == model::ExpertsRun::batched)
    return batched_experts(module, std::move(hidden), std::move(index), std::move(weights));
  return grouped_experts(module, std::move(hidden), std::move(index), std::move(weights));
}

// GraniteMoeParallelExperts: the products are made one after the other and joined at the end.
Tensor TransformersModules::linear_by_shares(model::ParameterRef weight, Tensor x_in,
                                             std::span<const std::int64_t> shares) {
  const t::Scope named(context_, scope(weight));
  const Tensor x = std::move(x_in);
  std::vector<Tensor> rows = t::split(x, shares, 0);
  std::vector<Tensor> products;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    Tensor matrix = t::select(parameter(weight), 0, static_cast<std::int64_t>(i));
    products.push_back(t::linear(rows[i], std::move(matrix), {}));
  }
  return t::cat(products, 0);
}

}  // namespace ullage::engines::pytorch
