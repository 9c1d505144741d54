#include "tensor/compiled.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

// A kernel's new buffer, of work in proportion to its elements.
Tensor buffer(Context& context, Op op, const Dims& sizes, DType dtype, std::int64_t flops_each) {
  const std::int64_t elements = numel(sizes);
  context.record_op(op, flops_each * elements, 2 * elements * size_of(dtype));
  return context.make(sizes, dtype);
}

Dims rows_of(const Tensor& x) {
  Dims sizes = x.sizes();
  sizes[-1] = 1;
  return sizes;
}

// A kernel's arguments go as soon as it has run.
void drop(Gradients& in) {
  for (std::size_t i = 0; i < in.size(); ++i) in[i].reset();
}

Readers for_readers(Recording& record, const Tensor& made, std::size_t readers) {
  Readers out;
  for (std::size_t i = 0; i < readers; ++i) out.push_back(record.finish(detach(made)));
  return out;
}

void rms_norm_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor x = unpack(node, 0);
  const Tensor weight = unpack(node, 1);
  if (node.wants(0)) out[0] = buffer(*node.context, Op::rms_norm_backward, x.sizes(), x.dtype(), 12);
  if (node.wants(1)) out[1] = buffer(*node.context, Op::sum, weight.sizes(), weight.dtype(), 2);
  drop(in);
}

void add_backward(Node& /*node*/, Gradients& in, Gradients& out) {
  out[0] = in[0];
  out[1] = in[0];
}

void scaled_add_backward(Node& node, Gradients& in, Gradients& out) {
  out[0] = in[0];
  if (node.wants(1)) out[1] = buffer(*node.context, Op::mul, in[0].sizes(), in[0].dtype(), 1);
}

Tensor add_in_memory_of_first(BackwardFunction backward, const Tensor& a, const Tensor& b) {
  Recording record(a.context(), backward, {&a, &b});
  a.context().record_op(Op::add_, a.numel(), 3 * a.bytes());
  return record.finish(detach(a));
}

// [batch, seq, heads, dim] of what attention was given.
Dims before_attention(const Node& node) { return node.dims; }

void repeat_heads_backward(Node& node, Gradients& in, Gradients& out) {
  out[0] = buffer(*node.context, Op::sum, before_attention(node), in[0].dtype(), node.number[0]);
}

// The sum over copies and the turn back are two kernels, with fp32 between them.
void rotary_backward(Node& node, Gradients& in, Gradients& out) {
  const Dims sizes = before_attention(node);
  Tensor summed;
  if (node.number[0] > 1) summed = buffer(*node.context, Op::sum, sizes, DType::f32, node.number[0]);
  out[0] = buffer(*node.context, Op::mul, sizes, in[0].dtype(), 6);
}

// Copies of heads lie in attention's order; without copies the order stays.
Tensor for_attention(Context& context, Op op, const Tensor& x, std::int64_t times, Recording& record) {
  if (record) {
    record.node()->dims = x.sizes();
    record.node()->number[0] = times;
  }
  if (times > 1) {
    const Dims sizes{x.size(0), x.size(2) * times, x.size(1), x.size(3)};
    return record.finish(buffer(context, op, sizes, x.dtype(), 6));
  }
  Tensor out = record.finish(buffer(context, op, x.sizes(), x.dtype(), 6));
  return transpose(std::move(out), 1, 2);
}

// The gradients of an adapter's share are the product's times a number: all are written by the same kernel.
void gate_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor gate = unpack(node, 0);
  const Tensor up = unpack(node, 1);
  for (const std::size_t edge : {std::size_t{2}, std::size_t{3}}) {
    if (node.wants(edge)) out[edge] = buffer(*node.context, Op::mul, up.sizes(), up.dtype(), 2);
  }
  for (const std::size_t edge : {std::size_t{0}, std::size_t{1}}) {
    if (node.wants(edge)) out[edge] = buffer(*node.context, Op::silu_backward, gate.sizes(), gate.dtype(), 8);
  }
  drop(in);
}

void dropout_backward(Node& node, Gradients& in, Gradients& out) {
  out[0] = buffer(*node.context, Op::dropout_backward, in[0].sizes(), in[0].dtype(), 2);
}

void cross_entropy_backward(Node& node, Gradients& /*in*/, Gradients& out) {
  const Tensor logits = unpack(node, 0);
  out[0] = buffer(*node.context, Op::log_softmax_backward, logits.sizes(), logits.dtype(), 5);
}

}  // namespace

Readers compiled_rms_norm(Tensor x_in, Tensor weight_in, std::size_t readers) {
  const Tensor x = std::move(x_in);
  const Tensor weight = std::move(weight_in);
  Context& context = x.context();
  Recording record(context, rms_norm_backward, {&x, &weight});
  save_input(record.node(), x);
  save_input(record.node(), weight);
  if (record) {
    const Tensor statistics = buffer(context, Op::mean, rows_of(x), DType::f32, 1);
    save_output(record.node(), statistics);
  }
  const Tensor out = buffer(context, Op::rms_norm, x.sizes(), x.dtype(), 6);
  return for_readers(record, out, readers);
}

Tensor compiled_add(Tensor a_in, Tensor b_in) {
  const Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  return add_in_memory_of_first(add_backward, a, b);
}

Tensor compiled_scaled_add(Tensor a_in, Tensor b_in) {
  const Tensor a = std::move(a_in);
  const Tensor b = std::move(b_in);
  return add_in_memory_of_first(scaled_add_backward, a, b);
}

Tensor compiled_rotary(Tensor x_in, Tensor table_in, std::int64_t times) {
  const Tensor x = std::move(x_in);
  const Tensor table = std::move(table_in);
  Recording record(x.context(), rotary_backward, {&x});
  save_input(record.node(), table);
  return for_attention(x.context(), Op::mul, x, times, record);
}

Tensor compiled_repeat_heads(Tensor x_in, std::int64_t times) {
  Tensor x = std::move(x_in);
  if (times == 1) return transpose(std::move(x), 1, 2);
  Recording record(x.context(), repeat_heads_backward, {&x});
  return for_attention(x.context(), Op::repeat, x, times, record);
}

Readers compiled_gate(const CompiledProduct& gate, const CompiledProduct& up, std::size_t readers) {
  Context& context = gate.out.context();
  Recording record(context, gate_backward, {&gate.out, &gate.update, &up.out, &up.update});
  save_input(record.node(), gate.out);
  save_input(record.node(), up.out);
  const Tensor out = buffer(context, Op::silu, gate.out.sizes(), gate.out.dtype(), 5);
  return for_readers(record, out, readers);
}

Tensor compiled_dropout(Tensor x_in, double p) {
  const Tensor x = std::move(x_in);
  if (p == 0) return x;
  Recording record(x.context(), dropout_backward, {&x});
  if (record) {
    const Tensor mask = buffer(x.context(), Op::dropout, x.sizes(), DType::boolean, 1);
    save_output(record.node(), mask);
  }
  return record.finish(buffer(x.context(), Op::dropout, x.sizes(), x.dtype(), 2));
}

Tensor compiled_cross_entropy(Tensor logits_in, Tensor targets_in, bool mean) {
  const Tensor logits = std::move(logits_in);
  const Tensor targets = std::move(targets_in);
  Context& context = logits.context();
  Recording record(context, cross_entropy_backward, {&logits});
  save_input(record.node(), logits);
  save_input(record.node(), targets);
  const Tensor largest = buffer(context, Op::maximum, rows_of(logits), DType::f32, 1);
  const Tensor sums = buffer(context, Op::sum, rows_of(logits), DType::f32, 2 * logits.size(-1));
  Tensor loss = empty(context, Op::nll_loss, {}, DType::f32);
  save_output(record.node(), largest);
  save_output(record.node(), sums);
  if (mean) {
    const Tensor counted = empty(context, Op::sum, {}, DType::f32);
    save_output(record.node(), counted);
  }
  return record.finish(std::move(loss));
}

}  // namespace ullage::tensor
