// Masks and attention functions of transformers 5.12 (masking_utils.py, integrations/sdpa_attention.py, the eager
// functions of the model files).
#include "engines/pytorch/causal_mask.h"
#include "engines/pytorch/transformers_modules.h"
#include "tensor/autocast.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Dims;
using t::Op;
using t::Tensor;

namespace {

Tensor repeat_kv(Tensor x_in, std::int64_t times) {
  Tensor x = std::move(x_in);
  if (times == 1) return x;
  const Dims sizes{x.size(0), x.size(1), times, x.size(2), x.size(3)};
  const Dims merged{x.size(0), x.size(1) * times, x.size(2), x.size(3)};
  x = t::unsqueeze(std::move(x), 2);
  x = t::expand(std::move(x), sizes);
  return t::reshape(std::move(x), merged);
}

using Window = std::optional<std::int64_t>;

bool window_matters(Window window, std::int64_t seq) { return window && *window <= seq; }

// find_packed_sequence_indices: differences of neighbouring positions, compared and summed up, only to learn that the
// batch holds one sequence a row. It asks for a value, so on fake tensors it is skipped.
void search_packed_sequences(t::Context& context, std::int64_t batch, std::int64_t seq) {
  Tensor differences;
  {
    const Tensor prepended = t::empty(context, Op::cat, {batch, seq + 1}, DType::i64);
    differences = t::empty(context, Op::sub, {batch, seq}, DType::i64);
  }
  const Tensor breaks = t::empty(context, Op::compare, {batch, seq}, DType::boolean);
  const Tensor sums = t::empty(context, Op::sum, {batch, seq}, DType::i64);
  const Tensor widened = t::to(breaks, DType::i64);
}

}  // namespace

// Whether a fused kernel can do without a mask. That no token is padding is a value to be asked for; a fake tensor
// cannot answer, and the answer that stands in for it is no.
bool TransformersModules::goes_without_mask(Window window, const model::MaskSource& source, std::int64_t seq) {
  if (makes_eager_mask(source) || source.more_functions || cached_tokens() > 0) return false;
  if (window_matters(window, seq) && seq > 1) return false;
  if (!source.padding) return true;
  t::empty(context_, Op::compare, {}, DType::boolean);
  return !context_.policy().traced;
}

// Fused kernels know plain causality; a window that cuts, or the eager function, wants a mask. The fused ones take it
// as Booleans, the eager function as 0 and the lowest number.
Tensor TransformersModules::causal_mask(Window window, const Tensor& hidden, model::MaskSource source) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const std::int64_t keys = cached_tokens() + seq;
  const t::NoGrad no_grad(context_);
  const t::Scope named(context_, context_.intern("causal_mask"));
  const Tensor counted = source.padding ? t::to(source.padding, DType::boolean) : Tensor{};
  if (source.positions && !context_.policy().traced) search_packed_sequences(context_, batch, seq);
  if (is_flash()) {
    if (source.padding) t::empty(context_, Op::compare, {}, DType::boolean);
    return {};
  }
  if (goes_without_mask(window, source, seq)) return {};
  Tensor mask = allowed_keys(context_, window, source, {batch, seq, keys});
  if (!makes_eager_mask(source)) return t::expand(std::move(mask), {batch, 1, seq, keys});
  const Tensor zero = t::empty(context_, Op::cast, {}, hidden.dtype());
  const Tensor lowest = t::empty(context_, Op::empty, {}, hidden.dtype());
  return t::empty(context_, Op::where, {batch, 1, seq, keys}, hidden.dtype());
}

// DynamicLayer.update (transformers/cache_utils.py): the cache keeps what it gives.
void TransformersModules::extend_past(Tensor& key, Tensor& value) {
  if (cache_.empty()) return;
  KeyValue& layer = cache_[static_cast<std::size_t>(context_.layer)];
  layer.key = t::cat({layer.key, key}, 2);
  layer.value = t::cat({layer.value, value}, 2);
  key = layer.key;
  value = layer.value;
}

void TransformersModules::drop_past() {
  for (KeyValue& layer : cache_) {
    layer.key.reset();
    layer.value.reset();
  }
  cache_.clear();
}

model::AttentionOutput TransformersModules::attention(const model::Attention& module, Tensor query, Tensor key,
                                                      Tensor value, Tensor mask) {
  const t::Scope named(context_, context_.intern("attention"));
  if (is_flash()) return flash_attention(module, std::move(query), std::move(key), std::move(value));
  if (module.sinks) return sink_attention(module, std::move(query), std::move(key), std::move(value), std::move(mask));
  if (!is_eager(module)) {
    return fused_attention(module, std::move(query), std::move(key), std::move(value), std::move(mask));
  }
  if (module.upcast)
    return upcast_attention(module, std::move(query), std::move(key), std::move(value), std::move(mask));
  return eager_attention(module, std::move(query), std::move(key), std::move(value), std::move(mask));
}

model::AttentionOutput TransformersModules::fused_attention(const model::Attention& module, Tensor query_in,
                                                            Tensor key_in, Tensor value_in, Tensor mask_in) {
  const Tensor query = std::move(query_in);
  Tensor key = std::move(key_in);
  Tensor value = std::move(value_in);
  const Tensor mask = std::move(mask_in);
  const std::int64_t times = module.heads / module.kv_heads;
  const bool grouped = !mask && module.groups_keys;
  // A mask rules out the grouped kernels, so keys and values are repeated first.
  if (mask) {
    key = repeat_kv(std::move(key), times);
    value = repeat_kv(std::move(value), times);
  }
  Tensor out = t::scaled_dot_product_attention(query, key, value, mask, module.dropout, grouped, module.causal);
  out = t::transpose(std::move(out), 1, 2);
  return {t::contiguous(std::move(out)), {}};
}

namespace {

// _is_packed_sequence: whether the positions of a batch of one begin anew.
void look_for_packed_sequences(t::Context& context, std::int64_t batch, std::int64_t seq) {
  const t::NoGrad no_grad(context);
  Tensor increasing;
  {
    const Tensor counted = t::empty(context, Op::arange, {seq}, DType::i64);
    const Tensor least = t::empty(context, Op::min, {}, DType::i64);
    increasing = t::empty(context, Op::add, {seq}, DType::i64);
  }
  if (batch > 1) return;
  Tensor difference = t::empty(context, Op::sub, {1, seq}, DType::i64);
  difference = t::empty(context, Op::abs, {1, seq}, DType::i64);
  difference = t::empty(context, Op::sum, {}, DType::i64);
  difference = t::to(std::move(difference), DType::boolean);
}

}  // namespace

// modeling_flash_attention_utils.py: fp32 is cast to the type that products are computed in, and a batch of one is
// looked at for several sequences in a row, whose positions would begin anew. Heads stay where they lie in memory: the
// function takes and gives [batch, seq, heads, dim], of which ours are views.
model::AttentionOutput TransformersModules::flash_attention(const model::Attention& module, Tensor query_in,
                                                            Tensor key_in, Tensor value_in) {
  const DType type = options_.computed_in();
  const Tensor query = t::to(std::move(query_in), type);
  const Tensor key = t::to(std::move(key_in), type);
  const Tensor value = t::to(std::move(value_in), type);
  look_for_packed_sequences(context_, query.size(0), query.size(2));
  Tensor out = t::flash_attention(query, key, value, module.causal);
  out = t::transpose(std::move(out), 1, 2);
  return {t::contiguous(std::move(out)), {}};
}

// A name that is bound again keeps its old tensor until the new one exists.
model::AttentionOutput TransformersModules::eager_attention(const model::Attention& module, Tensor query_in,
                                                            Tensor key_in, Tensor value_in, Tensor mask_in) {
  const Tensor query = std::move(query_in);
  const Tensor key = std::move(key_in);
  const Tensor value = std::move(value_in);
  const Tensor mask = std::move(mask_in);
  const std::int64_t times = module.heads / module.kv_heads;
  const Tensor key_states = repeat_kv(key, times);
  const Tensor value_states = repeat_kv(value, times);
  Tensor weights;
  {
    Tensor turned = t::transpose(key_states, -2, -1);
    weights = t::matmul(query, std::move(turned));
  }
  weights = t::mul_scalar(std::move(weights));
  if (module.softcaps) {
    weights = t::div_scalar(weights);
    weights = t::tanh(weights);
    weights = t::mul_scalar(weights);
  }
  if (mask) weights = t::add(weights, mask);
  const DType dtype = query.dtype();
  if (module.softmax_in_fp32) {
    Tensor probabilities = t::softmax(weights, DType::f32);
    weights = t::to(std::move(probabilities), dtype);
  } else {
    weights = t::softmax(weights);
    if (!module.plain_softmax) weights = t::to(weights, value.dtype());
  }
  weights = t::dropout(weights, module.dropout);
  Tensor out = t::matmul(weights, value_states);
  out = t::transpose(std::move(out), 1, 2);
  if (module.softmax_in_fp32 || module.plain_softmax) out = t::contiguous(std::move(out));
  return {std::move(out), std::move(weights)};
}

// GPT-2's reorder_and_upcast_attn: scores by one scaled product in fp32.
model::AttentionOutput TransformersModules::upcast_attention(const model::Attention& module, Tensor query_in,
                                                             Tensor key_in, Tensor value_in, Tensor mask_in) {
  const Tensor query = std::move(query_in);
  const Tensor key = std::move(key_in);
  const Tensor value = std::move(value_in);
  const Tensor mask = std::move(mask_in);
  const std::int64_t batch = query.size(0);
  const std::int64_t heads = query.size(1);
  const std::int64_t seq = query.size(2);
  const std::int64_t dim = query.size(3);
  Tensor weights = t::empty(context_, Op::empty, {batch * heads, seq, seq}, DType::f32);
  Tensor q;
  Tensor k;
  {
    const t::AutocastRegion off(context_, {});
    q = t::reshape(query, {-1, seq, dim});
    Tensor turned = t::transpose(key, -1, -2);
    k = t::reshape(std::move(turned), {-1, dim, seq});
    {
      Tensor q_fp32 = t::to(q, DType::f32);
      Tensor k_fp32 = t::to(k, DType::f32);
      weights = t::baddbmm(weights, std::move(q_fp32), std::move(k_fp32));
    }
    weights = t::reshape(weights, {batch, heads, seq, seq});
  }
  if (mask) weights = t::add(weights, mask);
  weights = t::softmax(weights, DType::f32);
  weights = t::to(weights, value.dtype());
  weights = t::dropout(weights, module.dropout);
  Tensor out = t::matmul(weights, value);
  out = t::transpose(std::move(out), 1, 2);
  return {std::move(out), std::move(weights)};
}

// gpt-oss: a logit for each head stands beside the scores, is part of the softmax and is dropped behind it.
model::AttentionOutput TransformersModules::sink_attention(const model::Attention& module, Tensor query_in,
                                                           Tensor key_in, Tensor value_in, Tensor mask_in) {
  const Tensor query = std::move(query_in);
  const Tensor key = std::move(key_in);
  const Tensor value = std::move(value_in);
  const Tensor mask = std::move(mask_in);
  const std::int64_t times = module.heads / module.kv_heads;
  const Tensor key_states = repeat_kv(key, times);
  const Tensor value_states = repeat_kv(value, times);
  Tensor weights;
  {
    Tensor turned = t::transpose(key_states, -2, -1);
    weights = t::matmul(query, std::move(turned));
  }
  weights = t::mul_scalar(std::move(weights));
  if (mask) weights = t::add(weights, mask);
  Tensor sinks = t::reshape(parameter(module.sinks), {1, -1, 1, 1});
  sinks = t::expand(std::move(sinks), {query.size(0), module.heads, query.size(2), 1});
  Tensor combined = t::cat({weights, sinks}, -1);
  {
    Tensor highest = t::max_last(combined, true).values;
    combined = t::sub(combined, std::move(highest));
  }
  const Tensor probabilities = t::softmax(combined, combined.dtype());
  const Tensor scores = t::slice(probabilities, -1, 0, probabilities.size(-1) - 1);
  Tensor dropped = t::dropout(scores, module.dropout);
  weights = t::to(std::move(dropped), value_states.dtype());
  Tensor out = t::matmul(weights, value_states);
  out = t::transpose(std::move(out), 1, 2);
  out = t::contiguous(std::move(out));
  return {std::move(out), std::move(weights)};
}

}  // namespace ullage::engines::pytorch
