// Reductions, softmax, norms, embedding and the loss.
#include "tensor/autocast.h"
#include "tensor/elementwise.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

void mean_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor kept = node.saved.size() == 0 ? Tensor{} : unpack(node, 0);
  const Tensor expanded = expand(in[0], node.dims);
  out[0] = div_scalar(expanded);
}

void mean_dim_backward(Node& node, Gradients& in, Gradients& out) {
  Tensor whole = unsqueeze(in[0], static_cast<int>(node.number[0]));
  whole = expand(std::move(whole), node.dims);
  out[0] = div_scalar(std::move(whole));
}

void sum_all_backward(Node& node, Gradients& in, Gradients& out) { out[0] = expand(in[0], node.dims); }

void softmax_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor result = unpack(node, 0);
  out[0] = elementwise(Op::softmax_backward, result, in[0], static_cast<DType>(node.number[0]));
}

void log_softmax_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor result = unpack(node, 0);
  out[0] = elementwise(Op::log_softmax_backward, result, in[0], static_cast<DType>(node.number[0]));
}

// softmax and log_softmax computed in `dtype`. On CUDA the kernel itself turns fp16, and only fp16, into fp32
// (ATen/native/SoftMax.cpp).
Tensor softmax_as(Op op, BackwardFunction backward, const Tensor& x, DType dtype) {
  const bool in_kernel = x.context().policy().cuda && x.dtype() == DType::f16 && dtype == DType::f32;
  const Tensor converted = in_kernel ? x : to(x, dtype);
  Recording record(x.context(), backward, {&converted});
  if (record) record.node()->number[0] = static_cast<std::int64_t>(converted.dtype());
  Tensor out = elementwise(op, converted, dtype);
  save_output(record.node(), out);
  return record.finish(std::move(out));
}

// The dtype of an operator that was given none: autocast sets it on CUDA (fp32_set_opt_dtype).
DType default_dtype(const Tensor& x) {
  return x.context().autocasts_on_cuda() && x.dtype() != DType::f64 ? DType::f32 : x.dtype();
}

void nll_loss_backward(Node& node, Gradients& /*in*/, Gradients& out) {
  const Tensor log_probabilities = unpack(node, 0);
  const Tensor targets = unpack(node, 1);
  const Tensor total_weight = unpack(node, 2);
  out[0] = empty(*node.context, Op::nll_loss_backward, log_probabilities.sizes(), log_probabilities.dtype());
}

// The mean, or with `each` the loss of each target.
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets, bool each) {
  Context& context = log_probabilities.context();
  Recording record(context, nll_loss_backward, {&log_probabilities});
  save_input(record.node(), log_probabilities);
  save_input(record.node(), targets);
  const Dims sizes = each ? targets.sizes() : Dims{};
  Tensor loss = empty(context, Op::nll_loss, sizes, log_probabilities.dtype());
  const Tensor total_weight = context.make({}, log_probabilities.dtype());
  save_output(record.node(), total_weight);
  return record.finish(std::move(loss));
}

Tensor nll_loss_of_each(Tensor log_probabilities_in, Tensor targets_in) {
  const Tensor log_probabilities = std::move(log_probabilities_in);
  const Tensor targets = std::move(targets_in);
  Context& context = log_probabilities.context();
  if (context.autocast.enabled) return in_fp32(context, nll_loss_of_each, log_probabilities, targets);
  return nll_loss(log_probabilities, targets, true);
}

Tensor mean_nll_loss(Tensor log_probabilities_in, Tensor targets_in) {
  const Tensor log_probabilities = std::move(log_probabilities_in);
  const Tensor targets = std::move(targets_in);
  Context& context = log_probabilities.context();
  if (context.autocast.enabled) return in_fp32(context, mean_nll_loss, log_probabilities, targets);
  return nll_loss(log_probabilities, targets, false);
}

void embedding_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor ids = unpack(node, 0);
  out[0] = empty(*node.context, Op::embedding_backward, node.dims, in[0].dtype());
}

// Edges: x, weight, bias. Slots: x, weight and bias (if any), mean, rstd. All three gradients come from one kernel.
void layer_norm_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  const Tensor x = unpack(node, 0);
  SmallList<Tensor, 3> others;
  for (std::size_t i = 1; i < node.saved.size(); ++i) others.add() = unpack(node, i);
  context.record_op(Op::layer_norm_backward, 8 * x.numel(), 3 * x.bytes());
  if (node.wants(0)) out[0] = context.make(x.sizes(), in[0].dtype());
  const Dims features{x.size(-1)};
  for (std::size_t i = 1; i < node.edges.size(); ++i) {
    if (node.wants(i)) out[i] = context.make(features, in[0].dtype());
  }
}

}  // namespace

Tensor mean_last(Tensor x_in, bool keeps_input) {
  const Tensor x = std::move(x_in);
  Context& context = x.context();
  Recording record(context, mean_backward, {&x});
  if (record) record.node()->dims = x.sizes();
  if (keeps_input) save_input(record.node(), x);
  Dims sizes = x.sizes();
  sizes[-1] = 1;
  context.record_op(Op::mean, x.numel(), x.bytes() + numel(sizes) * size_of(x.dtype()));
  return record.finish(context.make(sizes, x.dtype()));
}

Tensor mean_dim(Tensor x_in, int dim) {
  const Tensor x = std::move(x_in);
  Context& context = x.context();
  Recording record(context, mean_dim_backward, {&x});
  if (record) {
    record.node()->dims = x.sizes();
    record.node()->number[0] = dim;
  }
  Dims sizes = x.sizes();
  sizes.erase(dim);
  context.record_op(Op::mean, x.numel(), x.bytes() + numel(sizes) * size_of(x.dtype()));
  return record.finish(context.make(sizes, x.dtype()));
}

Tensor sum_all(Tensor x_in) {
  const Tensor x = std::move(x_in);
  Context& context = x.context();
  Recording record(context, sum_all_backward, {&x});
  if (record) record.node()->dims = x.sizes();
  context.record_op(Op::sum, x.numel(), x.bytes());
  return record.finish(context.make({}, default_dtype(x)));
}

Tensor sum_to(Tensor x_in, const Dims& sizes) {
  const Tensor x = std::move(x_in);
  if (x.sizes() == sizes) return x;
  Context& context = x.context();
  context.record_op(Op::sum, x.numel(), x.bytes() + tensor::numel(sizes) * size_of(x.dtype()));
  return context.make(sizes, x.dtype());
}

Tensor softmax(Tensor x_in, DType dtype) {
  const Tensor x = std::move(x_in);
  return softmax_as(Op::softmax, softmax_backward, x, dtype);
}

Tensor softmax(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return softmax_as(Op::softmax, softmax_backward, x, default_dtype(x));
}

Tensor log_softmax(Tensor x_in) {
  const Tensor x = std::move(x_in);
  return softmax_as(Op::log_softmax, log_softmax_backward, x, default_dtype(x));
}

Tensor cross_entropy(Tensor logits_in, Tensor targets_in) {
  Tensor logits = std::move(logits_in);
  const Tensor targets = std::move(targets_in);
  // cross_entropy_loss asks for the logits' own type by name, so autocast leaves that step to it.
  const Tensor log_probabilities = softmax_as(Op::log_softmax, log_softmax_backward, logits, logits.dtype());
  return mean_nll_loss(log_probabilities, targets);
}

Tensor cross_entropy_each(Tensor logits_in, Tensor targets_in) {
  const Tensor logits = std::move(logits_in);
  const Tensor targets = std::move(targets_in);
  const Tensor log_probabilities = softmax_as(Op::log_softmax, log_softmax_backward, logits, logits.dtype());
  return nll_loss_of_each(log_probabilities, targets);
}

Tensor embedding(Tensor weight_in, Tensor ids_in) {
  const Tensor weight = std::move(weight_in);
  const Tensor ids = std::move(ids_in);
  Context& context = weight.context();
  Recording record(context, embedding_backward, {&weight});
  if (record) record.node()->dims = weight.sizes();
  save_input(record.node(), ids);
  Dims sizes = ids.sizes();
  sizes.push_back(weight.size(-1));
  return record.finish(empty(context, Op::embedding, sizes, weight.dtype()));
}

Tensor layer_norm(Tensor x_in, Tensor weight_in, Tensor bias_in) {
  Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  const Tensor bias = std::move(bias_in);
  Context& context = x.context();
  if (context.autocasts_on_cuda()) return in_fp32(context, layer_norm, x, weight, bias);
  Recording record(context, layer_norm_backward, {&x, &weight, &bias});
  save_input(record.node(), x);
  if (weight) save_input(record.node(), weight);
  if (bias) save_input(record.node(), bias);
  Dims rows = x.sizes();
  rows[-1] = 1;
  context.record_op(Op::layer_norm, 8 * x.numel(), 2 * x.bytes());
  Tensor out = context.make(x.sizes(), x.dtype());
  // CUDA keeps the statistics of half-precision inputs in fp32, the CPU in the input's type.
  const DType statistics = context.policy().cuda && is_half(x.dtype()) ? DType::f32 : x.dtype();
  const Tensor mean = context.make(rows, statistics);
  const Tensor rstd = context.make(rows, statistics);
  save_output(record.node(), mean);
  save_output(record.node(), rstd);
  return record.finish(std::move(out));
}

}  // namespace ullage::tensor
