// Operators on images, [batch, channels, height, width]. Workspaces of cuDNN's kernels are not theirs to record.
#include <algorithm>

#include "base/bytes.h"
#include "tensor/autocast.h"
#include "tensor/elementwise.h"
#include "tensor/record.h"
#include "tensor/windows.h"

namespace ullage::tensor {
namespace {

// 2 x multiply-accumulates: every output reads a window of the channels of its group.
std::int64_t convolution_flops(const Tensor& out, const Tensor& weight) {
  const std::int64_t window = weight.numel() / std::max<std::int64_t>(weight.size(0), 1);
  return multiply_saturated(2 * window, out.numel());
}

// Edges: x, weight, bias (if any). Slots: x, weight. One operator makes whichever gradients are wanted.
void conv2d_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  const Tensor x = unpack(node, 0);
  const Tensor weight = unpack(node, 1);
  const std::int64_t flops = convolution_flops(in[0], weight);
  const int products = (node.wants(0) ? 1 : 0) + (node.wants(1) ? 1 : 0);
  context.record_op(Op::conv2d_backward, multiply_saturated(products, flops),
                    products * (in[0].bytes() + x.bytes() + weight.bytes()));
  if (node.wants(0)) out[0] = context.make(x.sizes(), x.dtype());
  if (node.wants(1)) out[1] = context.make(weight.sizes(), weight.dtype());
  if (node.edges.size() == 3 && node.wants(2)) out[2] = context.make({weight.size(0)}, weight.dtype());
}

// Edges: x, weight, bias. Slots: x, running mean, running variance, weight, mean, inverse deviation. The gradient of x
// is made even when nobody wants it.
void batch_norm_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  SmallList<Tensor, 3> saved;
  for (std::size_t i = 0; i < node.saved.size(); ++i) saved.add() = unpack(node, i);
  const Tensor& x = saved[0];
  context.record_op(Op::batch_norm_backward, 8 * x.numel(), 3 * x.bytes());
  Tensor gradient = context.make(x.sizes(), in[0].dtype());
  for (std::size_t i = 1; i < 3; ++i) {
    if (node.wants(i)) out[i] = context.make({x.size(1)}, saved[3].dtype());
  }
  if (node.wants(0)) out[0] = std::move(gradient);
}

// A kernel whose gradient has the shape of the saved input, in slot 0.
template <Op kOp>
void like_input_backward(Node& node, Gradients& in, Gradients& out) {
  SmallList<Tensor, 3> saved;
  for (std::size_t i = 0; i < node.saved.size(); ++i) saved.add() = unpack(node, i);
  node.context->record_op(kOp, saved[0].numel(), in[0].bytes() + saved[0].bytes());
  out[0] = node.context->make(saved[0].sizes(), in[0].dtype());
}

void spatial_mean_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor expanded = expand(in[0], node.dims);
  out[0] = div_scalar(expanded);
}

Dims pooled(const Tensor& x, const Pool2d& o) {
  return {x.size(0), x.size(1), window_positions(x.size(2), o.kernel, o.stride, o.padding),
          window_positions(x.size(3), o.kernel, o.stride, o.padding)};
}

void record_pool(const Tensor& x, Op op, const Dims& sizes, const Pool2d& o) {
  const std::int64_t outputs = numel(sizes);
  x.context().record_op(op, multiply_saturated(o.kernel * o.kernel, outputs), x.bytes() + outputs * size_of(x.dtype()));
}

// torch takes the plain mean over height and width where one pixel is asked for; it saves nothing.
Tensor spatial_mean(const Tensor& x) {
  Context& context = x.context();
  Recording record(context, spatial_mean_backward, {&x});
  if (record) record.node()->dims = x.sizes();
  context.record_op(Op::mean, x.numel(), x.bytes());
  return record.finish(context.make({x.size(0), x.size(1), 1, 1}, x.dtype()));
}

// Over as many dimensions as there are behind the channels.
Tensor convolution(Tensor x_in, Tensor weight_in, Tensor bias_in, Convolution o) {
  const Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  const Tensor bias = std::move(bias_in);
  Context& context = x.context();
  if (context.autocast.enabled) {
    const auto run = [o](Tensor input, Tensor w, Tensor b) {
      return convolution(std::move(input), std::move(w), std::move(b), o);
    };
    return in_low_precision(context, run, x, weight, bias);
  }
  Recording record = bias ? Recording(context, conv2d_backward, {&x, &weight, &bias})
                          : Recording(context, conv2d_backward, {&x, &weight});
  save_input(record.node(), x);
  save_input(record.node(), weight);
  Dims sizes{x.size(0), weight.size(0)};
  for (int i = 2; i < x.dim(); ++i) sizes.push_back(window_positions(x.size(i), weight.size(i), o.stride, o.padding));
  const std::int64_t window = weight.numel() / std::max<std::int64_t>(weight.size(0), 1);
  context.record_op(Op::conv2d, multiply_saturated(2 * window, numel(sizes)),
                    x.bytes() + weight.bytes() + numel(sizes) * size_of(x.dtype()));
  return record.finish(context.make(sizes, x.dtype()));
}

}  // namespace

Tensor conv2d(Tensor x, Tensor weight, Tensor bias, Convolution o) {
  return convolution(std::move(x), std::move(weight), std::move(bias), o);
}

Tensor conv1d(Tensor x, Tensor weight, Tensor bias, Convolution o) {
  return convolution(std::move(x), std::move(weight), std::move(bias), o);
}

Tensor batch_norm(Tensor x_in, Tensor weight_in, Tensor bias_in, Tensor running_mean_in, Tensor running_var_in) {
  const Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  const Tensor bias = std::move(bias_in);
  const Tensor running_mean = std::move(running_mean_in);
  const Tensor running_var = std::move(running_var_in);
  Context& context = x.context();
  Recording record(context, batch_norm_backward, {&x, &weight, &bias});
  for (const Tensor* saved : {&x, &running_mean, &running_var, &weight}) save_input(record.node(), *saved);
  context.record_op(Op::batch_norm, 8 * x.numel(), 2 * x.bytes());
  Tensor out = context.make(x.sizes(), x.dtype());
  // CUDA keeps the statistics of half-precision inputs in fp32, the CPU in the input's type.
  const DType statistics = context.policy().cuda && is_half(x.dtype()) ? DType::f32 : x.dtype();
  const Tensor mean = context.make({x.size(1)}, statistics);
  const Tensor inverse_deviation = context.make({x.size(1)}, statistics);
  save_output(record.node(), mean);
  save_output(record.node(), inverse_deviation);
  return record.finish(std::move(out));
}

Tensor max_pool2d(Tensor x_in, Pool2d o) {
  const Tensor x = std::move(x_in);
  Recording record(x.context(), like_input_backward<Op::max_pool2d_backward>, {&x});
  save_input(record.node(), x);
  const Dims sizes = pooled(x, o);
  record_pool(x, Op::max_pool2d, sizes, o);
  Tensor out = x.context().make(sizes, x.dtype());
  const Tensor indices = x.context().make(sizes, DType::i64);  // where each maximum came from
  save_output(record.node(), indices);
  return record.finish(std::move(out));
}

Tensor avg_pool2d(Tensor x_in, Pool2d o) {
  const Tensor x = std::move(x_in);
  Recording record(x.context(), like_input_backward<Op::avg_pool2d_backward>, {&x});
  save_input(record.node(), x);
  const Dims sizes = pooled(x, o);
  record_pool(x, Op::avg_pool2d, sizes, o);
  return record.finish(x.context().make(sizes, x.dtype()));
}

Tensor adaptive_avg_pool2d(Tensor x_in, std::int64_t out) {
  const Tensor x = std::move(x_in);
  if (out == 1) return spatial_mean(x);
  Recording record(x.context(), like_input_backward<Op::adaptive_avg_pool2d_backward>, {&x});
  save_input(record.node(), x);
  const Dims sizes{x.size(0), x.size(1), out, out};
  x.context().record_op(Op::adaptive_avg_pool2d, x.numel(), x.bytes() + numel(sizes) * size_of(x.dtype()));
  return record.finish(x.context().make(sizes, x.dtype()));
}

}  // namespace ullage::tensor
