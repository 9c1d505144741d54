#include "tensor/record.h"
#include "tensor/varlen.h"

namespace ullage::tensor {
namespace {

constexpr std::int64_t kRowsBehind = 128;  // of each sequence: the kernel's largest block
constexpr std::int64_t kColumns = 32;      // to which heads are rounded up

// dims: of the input.
void take_rows_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor rows = unpack(node, 0);
  out[0] = empty(*node.context, Op::zeros, node.dims, in[0].dtype());
}

void put_rows_backward(Node& node, Gradients& in, Gradients& out) {
  const Tensor rows = unpack(node, 0);
  out[0] = empty(*node.context, Op::index, {rows.size(0), in[0].size(1)}, in[0].dtype());
}

std::int64_t flops_of(const Tensor& query, std::int64_t length, bool causal) {
  const std::int64_t full = 4 * query.numel() * length;
  return causal ? full / 2 : full;
}

// number: batch, length, whether it is causal. Slots: query, key, value, out, log-sum-exp, starts of queries and of
// keys, random state.
void packed_backward(Node& node, Gradients& in, Gradients& out) {
  constexpr std::size_t kSaved = 8;
  Context& context = *node.context;
  Tensor held[kSaved];
  for (std::size_t i = 0; i < kSaved; ++i) held[i] = unpack(node, i);
  const Tensor& query = held[0];
  const Tensor& key = held[1];
  context.record_op(Op::flash_attention_backward, flops_of(query, node.number[1], node.number[2] != 0) * 5 / 2,
                    2 * (query.bytes() + key.bytes() + held[2].bytes()) + in[0].bytes());
  for (std::size_t i = 0; i < 3; ++i) out[i] = context.make(held[i].sizes(), held[i].dtype());
  const std::int64_t rows = query.size(0) + kRowsBehind * node.number[0];
  const Tensor row_sums = context.make({query.size(1), rows}, DType::f32);
  if (context.policy().traced) return;  // a tracer does not look into the kernel
  const Tensor accumulator =
      context.make({rows, query.size(1), (query.size(2) + kColumns - 1) / kColumns * kColumns}, DType::f32);
}

void cross_entropy_backward(Node& node, Gradients& /*in*/, Gradients& out) {
  Context& context = *node.context;
  // The gradient of the second result, which nobody uses, is filled in.
  const Tensor none = empty(context, Op::zeros, {node.inputs[0].sizes[0]}, DType::f32);
  const Tensor logits = unpack(node, 0);
  const Tensor sums = unpack(node, 1);
  const Tensor targets = unpack(node, 2);
  context.record_op(Op::nll_loss_backward, 4 * logits.numel(), 2 * logits.bytes());
  out[0] = context.make(logits.sizes(), logits.dtype());
}

}  // namespace

Tensor take_rows(Tensor x_in, Tensor rows_in) {
  const Tensor x = std::move(x_in);
  const Tensor rows = std::move(rows_in);
  Recording record(x.context(), take_rows_backward, {&x});
  if (record) record.node()->dims = x.sizes();
  save_input(record.node(), rows);
  return record.finish(empty(x.context(), Op::gather, {rows.size(0), x.size(1)}, x.dtype()));
}

Tensor put_rows(Tensor x_in, Tensor rows_in, std::int64_t total) {
  const Tensor x = std::move(x_in);
  const Tensor rows = std::move(rows_in);
  Recording record(x.context(), put_rows_backward, {&x});
  save_input(record.node(), rows);
  return record.finish(empty(x.context(), Op::zeros, {total, x.size(1)}, x.dtype()));
}

Tensor flash_attention_packed(Tensor query_in, Tensor key_in, Tensor value_in, const PackedSequences& sequences,
                              Tensor slopes_in, bool causal) {
  const Tensor query = std::move(query_in);
  const Tensor key = std::move(key_in);
  const Tensor value = std::move(value_in);
  Tensor slopes = std::move(slopes_in);
  Context& context = query.context();
  Recording record(context, packed_backward, {&query, &key, &value});
  for (const Tensor* input : {&query, &key, &value}) save_input(record.node(), *input);
  context.record_op(Op::flash_attention, flops_of(query, sequences.length, causal),
                    2 * query.bytes() + key.bytes() + value.bytes());
  Tensor out = context.make(query.sizes(), query.dtype());
  const Tensor sums = context.make({query.size(1), query.size(0)}, DType::f32);
  const Tensor random_state = context.make({2}, DType::i64);
  if (record) {
    Node& node = *record.node();
    node.number[0] = sequences.batch;
    node.number[1] = sequences.length;
    node.number[2] = causal ? 1 : 0;
    save_output(&node, out);
    save_output(&node, sums);
    save_input(&node, sequences.query_starts);
    save_input(&node, sequences.key_starts);
    save_output(&node, random_state);
    if (!node.ghost) node.kept = std::move(slopes);
  }
  return record.finish(std::move(out));
}

Tensor kernel_cross_entropy(Tensor logits_in, Tensor targets_in) {
  const Tensor logits = std::move(logits_in);
  const Tensor targets = std::move(targets_in);
  Context& context = logits.context();
  Recording record(context, cross_entropy_backward, {&logits});
  save_input(record.node(), logits);
  context.record_op(Op::nll_loss, 4 * logits.numel(), logits.bytes());
  Tensor losses = context.make({logits.size(0)}, DType::f32);
  const Tensor sums = context.make({logits.size(0)}, DType::f32);
  save_output(record.node(), sums);
  save_input(record.node(), targets);
  const Tensor squares = context.make({logits.size(0)}, DType::f32);
  return record.finish(std::move(losses));
}

}  // namespace ullage::tensor
