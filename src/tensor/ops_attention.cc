// Scaled dot-product attention: the fused kernels and the composed path.
#include "tensor/autocast.h"
#include "tensor/elementwise.h"
#include "tensor/record.h"

namespace ullage::tensor {
namespace {

constexpr std::size_t kMostSaved = 8;             // by a fused kernel
constexpr std::int64_t kLogSumExpAlignment = 32;  // of the memory-efficient kernel's row statistics

// The memory-efficient kernel, and the CPU's in backward, write [batch, seq, heads, dim] and show it as
// [batch, heads, seq, dim].
Tensor make_heads_last(Context& context, const Dims& sizes, DType dtype) {
  const std::int64_t heads = sizes[1];
  const std::int64_t seq = sizes[2];
  const std::int64_t dim = sizes[3];
  return context.make(sizes, Dims{seq * heads * dim, dim, heads * dim, 1}, dtype);
}

Tensor make_like(const Tensor& x) { return x.context().make_in_order_of(x, x.dtype()); }

// Of `dim` elements a head; what is padded behind them is no work of the model's.
std::int64_t attention_flops(const Tensor& query, const Tensor& key, std::int64_t dim, bool causal) {
  const std::int64_t full = 4 * query.size(0) * query.size(1) * query.size(2) * dim * key.size(2);
  return causal ? full / 2 : full;
}

// Whether what kernels take from PyTorch's allocator for themselves shows: a tracer looks at operators from outside.
bool shows_workspaces(const Context& context) { return context.policy().cuda && !context.policy().traced; }

// mha_bwd (ATen/native/transformers/cuda/flash_attn/flash_api.cpp): row sums of the gradient, the query's gradient in
// fp32, and key's and value's for all heads where heads share them.
void use_flash_workspace(const Tensor& query, const Tensor& key) {
  constexpr std::int64_t kRows = 128;
  constexpr std::int64_t kColumns = 32;
  Context& context = query.context();
  const std::int64_t rows = round_up(query.size(2), kRows);
  const std::int64_t columns = round_up(query.size(3), kColumns);
  const Tensor row_sums = context.make({query.size(0), query.size(1), rows}, DType::f32);
  const Tensor accumulator = context.make({query.size(0), rows, query.size(1), columns}, DType::f32);
  if (key.size(1) == query.size(1)) return;
  const Dims wide{key.size(0), key.size(2), query.size(1), key.size(3)};
  const Tensor wide_key = context.make(wide, key.dtype());
  const Tensor wide_value = context.make(wide, key.dtype());
}

// Slots: key, query, value (by their names), mask if any, log-sum-exp, out, and the kernel's own. number[0]: causal;
// number[1]: elements of a head.
template <Op kOp>
void fused_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  // Let go in reverse order, as C++ locals of the kernel's binding are.
  Tensor held[kMostSaved];
  assert(node.saved.size() <= kMostSaved);
  for (std::size_t i = 0; i < node.saved.size(); ++i) held[i] = unpack(node, i);
  const Tensor* const inputs[] = {&held[1], &held[0], &held[2]};  // query, key, value
  const std::int64_t flops = attention_flops(*inputs[0], *inputs[1], node.number[1], node.number[0] != 0) * 5 / 2;
  context.record_op(kOp, flops, 2 * (held[0].bytes() + held[1].bytes() + held[2].bytes()) + in[0].bytes());
  // CUDA's flash kernel and cuDNN's lay each gradient out as its tensor.
  const bool as_inputs = kOp != Op::efficient_attention_backward && context.policy().cuda;
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor& input = *inputs[i];
    out[i] = as_inputs ? make_like(input) : make_heads_last(context, input.sizes(), input.dtype());
  }
  if (kOp == Op::flash_attention_backward && shows_workspaces(context)) {
    use_flash_workspace(*inputs[0], *inputs[1]);
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (!node.wants(i)) out[i].reset();
  }
}

// FlashAttention, the CPU's kernel of that name, and cuDNN's: the result lies in memory as the query does.
// PyTorch's kernels on CUDA return a debugging tensor beside their random state; the package's own does not.
enum class RandomState : std::uint8_t { none, alone, with_debugging };

template <Op kForward, Op kBackward>
Tensor flash(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, std::int64_t dim,
             bool causal, RandomState random) {
  Context& context = query.context();
  Recording record(context, fused_backward<kBackward>, {&query, &key, &value});
  if (record) {
    record.node()->number[0] = causal ? 1 : 0;
    record.node()->number[1] = dim;
  }
  save_input(record.node(), key);
  save_input(record.node(), query);
  save_input(record.node(), value);
  if (mask) save_input(record.node(), mask);
  context.record_op(kForward, attention_flops(query, key, dim, causal),
                    2 * query.bytes() + key.bytes() + value.bytes());
  Tensor out =
      query.size(3) == value.size(3)
          ? make_like(query)
          : make_heads_last(context, {query.size(0), query.size(1), query.size(2), value.size(3)}, query.dtype());
  const Tensor statistics = context.make({query.size(0), query.size(1), query.size(2)}, DType::f32);
  save_output(record.node(), statistics);
  save_output(record.node(), out);
  if (random != RandomState::none) {
    const Tensor random_state = context.make({2}, DType::u64);
    const Tensor unused = random == RandomState::with_debugging ? context.make({}, DType::u64) : Tensor{};
    save_output(record.node(), random_state);
    if (unused) save_output(record.node(), unused);
  }
  return record.finish(std::move(out));
}

RandomState random_state_of(const Context& context) {
  return context.policy().cuda ? RandomState::with_debugging : RandomState::none;
}

// repeat_interleave: a copy even of what is repeated once.
Tensor repeat_heads(Tensor x_in, std::int64_t heads) {
  Tensor x = std::move(x_in);
  const std::int64_t times = heads / x.size(1);
  if (times == 1 && !x.context().policy().traced) return x;
  const Dims sizes{x.size(0), x.size(1), times, x.size(2), x.size(3)};
  const Dims merged{x.size(0), heads, x.size(2), x.size(3)};
  Tensor wide = unsqueeze(std::move(x), 2);
  wide = expand(std::move(wide), sizes);
  wide = copy_contiguous(std::move(wide));
  return view(std::move(wide), merged);
}

Tensor efficient(const Tensor& query, Tensor key, Tensor value, const Tensor& mask, bool causal) {
  const std::int64_t dim = query.size(3);
  Context& context = query.context();
  Recording record(context, fused_backward<Op::efficient_attention_backward>, {&query, &key, &value});
  if (record) {
    record.node()->number[0] = causal ? 1 : 0;
    record.node()->number[1] = dim;
  }
  save_input(record.node(), key);
  save_input(record.node(), query);
  save_input(record.node(), value);
  if (mask) save_input(record.node(), mask);
  context.record_op(Op::efficient_attention, attention_flops(query, key, dim, causal),
                    2 * query.bytes() + key.bytes() + value.bytes());
  Tensor out = make_heads_last(context, {query.size(0), query.size(1), query.size(2), value.size(3)}, query.dtype());
  const Tensor statistics =
      context.make({query.size(0), query.size(1), round_up(query.size(2), kLogSumExpAlignment)}, DType::f32);
  save_output(record.node(), statistics);
  save_output(record.node(), out);
  // The random state is on the host unless a graph is captured (Note [Seed and Offset Device] in cuda/attention.cu); a
  // tracer shows it on the card.
  if (context.policy().traced) {
    const Tensor seed = context.make({}, DType::i64);
    const Tensor offset = context.make({}, DType::i64);
    save_output(record.node(), seed);
    save_output(record.node(), offset);
  }
  return record.finish(std::move(out));
}

// 0 where a query may look and the lowest number elsewhere, in the query's type (convert_boolean_attn_mask).
Tensor additive_mask(const Tensor& mask, DType dtype) {
  if (mask.dtype() != DType::boolean) return mask;
  Context& context = mask.context();
  const NoGrad no_grad(context);
  const Tensor zero = empty(context, Op::empty, {}, dtype);
  const Tensor lowest = empty(context, Op::empty, {}, dtype);
  return empty(context, Op::where, mask.sizes(), dtype);
}

// The memory-efficient kernel reads its bias in rows of 16 (pad_bias).
Tensor aligned_mask(Tensor mask) {
  constexpr std::int64_t kAlignment = 16;
  const std::int64_t columns = mask.size(-1);
  if (columns % kAlignment == 0) return mask;
  Tensor padded = pad_last(std::move(mask), round_up(columns, kAlignment) - columns);
  return slice(std::move(padded), -1, 0, columns);
}

Tensor causal_triangle(Context& context, std::int64_t rows, std::int64_t columns, DType dtype) {
  Tensor triangle;
  {
    const Tensor ones = empty(context, Op::ones_like, {rows, columns}, DType::boolean);
    triangle = empty(context, Op::compare, {rows, columns}, DType::boolean);
  }
  return additive_mask(triangle, dtype);
}

// _safe_softmax: rows that may look at nothing become zero, in place.
Tensor safe_softmax(Tensor x_in, DType dtype) {
  const Tensor x = std::move(x_in);
  Context& context = x.context();
  Tensor out = softmax(x, dtype);
  if (!shows_workspaces(context)) return out;
  Dims rows = x.sizes();
  rows[-1] = 1;
  const Tensor masked = empty(context, Op::compare, x.sizes(), DType::boolean);
  const Tensor masked_rows = empty(context, Op::logical_and, rows, DType::boolean);
  const Tensor zero = empty(context, Op::empty, {}, dtype);
  return out;
}

// _scaled_dot_product_attention_math: in fp32 for half precision; query and key are each scaled by the root of the
// scale. The probabilities are a second result, converted before the product with the values.
Tensor composed(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in, const Tensor& mask,
                double dropout_p, bool causal, bool grouped) {
  Context& context = query_in.context();
  const DType origin = query_in.dtype();
  const DType dtype = is_half(origin) ? DType::f32 : origin;
  const Tensor query = to(query_in, dtype);
  const Tensor key = to(key_in, dtype);
  const Tensor value = to(value_in, dtype);
  Tensor scaled_query = mul_scalar(query);
  Tensor bias = mask;
  if (causal) bias = causal_triangle(context, query.size(2), key.size(2), dtype);
  const Tensor wide_key = grouped ? repeat_heads(key, query.size(1)) : key;
  const Tensor wide_value = grouped ? repeat_heads(value, query.size(1)) : value;
  Tensor scores;
  {
    Tensor turned = mul_scalar(wide_key);
    turned = transpose(std::move(turned), -2, -1);
    scores = matmul(scaled_query, std::move(turned));
  }
  if (bias && shows_workspaces(context)) iadd(scores, bias);
  else if (bias) scores = add(scores, bias);
  scores = safe_softmax(scores, dtype);
  scores = dropout(scores, dropout_p);
  const Tensor probabilities = to(scores, origin);
  Tensor out = matmul(scores, wide_value);
  out = to(std::move(out), origin);
  scaled_query.reset();
  bias.reset();
  return out;
}

// The tracer's own function casts query, key and value, lets go of the casts when it rebinds the names, and hands the
// mask on as it is.
Tensor attention_in_low_precision(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                                  double dropout_p, bool grouped, bool causal) {
  Context& context = query.context();
  if (!(context.policy().cuda && context.policy().traced)) {
    const auto run = [=](Tensor q, Tensor k, Tensor v, Tensor m) {
      return scaled_dot_product_attention(std::move(q), std::move(k), std::move(v), std::move(m), dropout_p, grouped,
                                          causal);
    };
    return in_low_precision(context, run, query, key, value, mask);
  }
  Tensor v = cast_to_low_precision(value);
  Tensor k = cast_to_low_precision(key);
  Tensor q = cast_to_low_precision(query);
  const Restore<bool> off(context.autocast.enabled, false);
  return scaled_dot_product_attention(std::move(q), std::move(k), std::move(v), mask, dropout_p, grouped, causal);
}

AttentionRequest request_of(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                            double dropout_p) {
  AttentionRequest out;
  const Context& context = query.context();
  out.card = context.policy().card;
  out.dtype = query.dtype();
  out.mask = static_cast<bool>(mask);
  out.needs_gradient = query.requires_grad() || key.requires_grad() || value.requires_grad();
  out.dropout = dropout_p;
  out.head_dim = query.size(3);
  out.value_head_dim = value.size(3);
  out.queries = query.size(2);
  out.keys = key.size(2);
  out.grouped = key.size(1) != query.size(1);
  return out;
}

void pad_backward(Node& node, Gradients& in, Gradients& out) {
  out[0] = empty(*node.context, Op::clone, node.dims, in[0].dtype());
}

// pad_last_dim<8> (ATen/native/transformers/attention.cpp): zeros up to what FlashAttention's kernels read at once.
Tensor pad_heads(const Tensor& x) {
  constexpr std::int64_t kAlignment = 8;
  Recording record(x.context(), pad_backward, {&x});
  if (record) record.node()->dims = x.sizes();
  Dims sizes = x.sizes();
  sizes[-1] = round_up(sizes[-1], kAlignment);
  return record.finish(empty(x.context(), Op::pad, sizes, x.dtype()));
}

Tensor flash_padded(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias, bool causal,
                    RandomState random) {
  constexpr auto kRun = flash<Op::flash_attention, Op::flash_attention_backward>;
  const std::int64_t dim = query.size(3);
  if (dim % 8 == 0 || !shows_workspaces(query.context())) return kRun(query, key, value, bias, dim, causal, random);
  const Tensor wide_query = pad_heads(query);
  const Tensor wide_key = pad_heads(key);
  const Tensor wide_value = pad_heads(value);
  Tensor out = kRun(wide_query, wide_key, wide_value, bias, dim, causal, random);
  return slice(std::move(out), -1, 0, dim);
}

}  // namespace

Tensor scaled_dot_product_attention(Tensor query_in, Tensor key_in, Tensor value_in, Tensor mask_in, double dropout_p,
                                    bool grouped, bool causal) {
  const Tensor query = std::move(query_in);
  Tensor key = std::move(key_in);
  Tensor value = std::move(value_in);
  const Tensor mask = std::move(mask_in);
  if (query.context().autocast.enabled)
    return attention_in_low_precision(query, key, value, mask, dropout_p, grouped, causal);
  causal = causal && !mask && query.size(2) > 1;
  Context& context = query.context();
  const AttentionKernel kernel = context.policy().attention(request_of(query, key, value, mask, dropout_p));
  // The tracer hands the kernel the Boolean mask as it is.
  const bool traced = context.policy().cuda && context.policy().traced;
  const bool converts = mask && !traced;
  Tensor bias = converts ? additive_mask(mask, query.dtype()) : mask;
  if (kernel == AttentionKernel::math) return composed(query, key, value, bias, dropout_p, causal, grouped);
  if (kernel == AttentionKernel::cudnn) {
    return flash<Op::cudnn_attention, Op::cudnn_attention_backward>(query, key, value, bias, query.size(3), causal,
                                                                    random_state_of(context));
  }
  if (kernel == AttentionKernel::flash) return flash_padded(query, key, value, bias, causal, random_state_of(context));
  if (converts) bias = aligned_mask(std::move(bias));
  if (grouped && traced) {
    key = repeat_heads(std::move(key), query.size(1));
    value = repeat_heads(std::move(value), query.size(1));
  }
  return efficient(query, key, value, bias, causal);
}

Tensor flash_attention(Tensor query_in, Tensor key_in, Tensor value_in, bool causal) {
  const Tensor query = std::move(query_in);
  const Tensor key = std::move(key_in);
  const Tensor value = std::move(value_in);
  return flash_padded(query, key, value, {}, causal && query.size(2) > 1, RandomState::alone);
}

}  // namespace ullage::tensor
