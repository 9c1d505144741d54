// llmfoundry/models/mpt/modeling_mpt.py, models/layers/{attention,blocks,ffn,norm}.py (0.22).
#include "engines/pytorch/llm_foundry.h"

#include <fmt/core.h>

#include "model/config_fields.h"
#include "tensor/autocast.h"
#include "tensor/record.h"
#include "tensor/varlen.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::Architecture;
using model::Axis;
using model::axis;
using model::call;
using model::Dimension;
using model::LayerKind;
using t::Op;
using t::Tensor;

Tensor LlmFoundryModules::norm(const model::Norm& module, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const t::Scope named(context(), scope(module.weight));
  const t::Autocast state = autocast();
  const auto cast = [&](const Tensor& tensor) { return state.enabled && tensor ? t::to(tensor, state.dtype) : tensor; };
  const Tensor narrow = cast(x);
  const Tensor weight = cast(parameter(module.weight));
  const Tensor bias = cast(optional_parameter(module.bias));
  const t::AutocastRegion off(context(), {false, state.dtype});
  return t::layer_norm(narrow, weight, bias);
}

namespace {

// What the model hands to every layer: which tokens are none of padding, for queries, keys and values, where sequences
// begin, and ALiBi's slopes.
struct Packing {
  Tensor queries, keys, values;
  t::PackedSequences sequences;
  Tensor slopes;
};

// bert_padding.unpad_input of something that is one element wide; `counts` stays bound until the next one.
struct Unpadded {
  Tensor rows;
  Tensor starts;
  Tensor counts;
};

Unpadded unpad(t::Context& context, std::int64_t batch, std::int64_t seq, Tensor& bound) {
  Unpadded out;
  Tensor taken;
  {
    const Tensor states = t::empty(context, Op::empty, {batch, seq, 1}, DType::f32);
    const Tensor lengths = t::empty(context, Op::sum, {batch}, DType::i32);
    out.counts = t::empty(context, Op::sum, {batch}, DType::i32);
    out.rows = t::empty(context, Op::index, {batch * seq, 1}, DType::i64);
    t::empty(context, Op::maximum, {}, DType::i32);
    {
      const Tensor sums = t::empty(context, Op::cumsum, {batch}, DType::i32);
      out.starts = t::empty(context, Op::pad, {batch + 1}, DType::i32);
    }
    taken = t::empty(context, Op::gather, {batch * seq, 1}, DType::f32);
  }
  bound.reset();
  taken.reset();
  bound = out.counts;
  return out;
}

// gen_flash_attn_padding_info, without a mask of its own.
void pack(t::Context& context, std::int64_t batch, std::int64_t seq, Packing& out) {
  const Tensor mask = t::empty(context, Op::empty, {batch, seq}, DType::boolean);
  Tensor bound;
  Unpadded queries = unpad(context, batch, seq, bound);
  queries.counts.reset();
  Unpadded keys = unpad(context, batch, seq, bound);
  keys.counts.reset();
  Unpadded values = unpad(context, batch, seq, bound);
  out.queries = std::move(queries.rows);
  out.keys = std::move(keys.rows);
  out.values = std::move(values.rows);
  out.sequences = {batch, seq, std::move(queries.starts), std::move(keys.starts)};
}

// gen_slopes: of as many heads as the next power of two has, of which the first are taken in another order.
Tensor slopes_of(t::Context& context, std::int64_t heads) {
  std::int64_t power = 1;
  while (power < heads) power *= 2;
  Tensor numbers = t::empty(context, Op::arange, {power}, DType::f32);
  {
    Tensor scaled = t::empty(context, Op::mul, {power}, DType::f32);
    numbers = std::move(scaled);
  }
  Tensor slopes;
  {
    const Tensor powers = t::empty(context, Op::pow, {power}, DType::f32);
    const Tensor inverse = t::empty(context, Op::div, {power}, DType::f32);
    slopes = t::empty(context, Op::mul, {power}, DType::f32);
  }
  if (power != heads) {
    Tensor reordered = t::empty(context, Op::cat, {power}, DType::f32);
    slopes = std::move(reordered);
  }
  return slopes;
}

// flash_attn_fn: every token is taken out of the batch, and put back behind the kernel.
Tensor attend(LlmFoundryModules& m, const model::Attention& a, const Tensor& query, const Tensor& key,
              const Tensor& value, const Packing& packing) {
  const t::Scope named(m.context(), m.context().intern("attention"));
  const std::int64_t tokens = query.size(0) * query.size(1);
  const auto take = [&](const Tensor& x, const Tensor& rows) {
    Tensor flat = t::reshape(x, {tokens, x.size(2)});
    Tensor indices = t::view(rows, {tokens});
    Tensor taken = t::take_rows(std::move(flat), std::move(indices));
    return t::view(std::move(taken), {tokens, a.heads, a.head_dim});
  };
  const Tensor queries = take(query, packing.queries);
  const Tensor keys = take(key, packing.keys);
  const Tensor values = take(value, packing.values);
  const Tensor attended = t::flash_attention_packed(queries, keys, values, packing.sequences, packing.slopes, true);
  Tensor joined = t::view(attended, {tokens, a.heads * a.head_dim});
  Tensor indices = t::view(packing.queries, {tokens});
  Tensor out = t::put_rows(std::move(joined), std::move(indices), tokens);
  return t::view(std::move(out), {query.size(0), query.size(1), a.heads * a.head_dim});
}

Tensor attention(LlmFoundryModules& m, const model::Attention& a, Tensor x_in, const Packing& packing) {
  const Tensor x = std::move(x_in);
  std::vector<Tensor> parts;
  {
    Tensor mixed = m.project(a.qkv, x);
    if (a.clipped) mixed = t::clamp(mixed);
    parts = t::split(std::move(mixed), a.heads * a.head_dim, 2);
  }
  const Tensor context = attend(m, a, parts[0], parts[1], parts[2], packing);
  return m.project(a.o, context);
}

// MPTMLP
Tensor feed_forward(LlmFoundryModules& m, const model::Mlp& mlp, Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor wide = m.project(mlp.up, x);
  wide = m.activation(mlp.activation, std::move(wide));
  return m.project(mlp.down, std::move(wide));
}

Tensor added(LlmFoundryModules& m, const LayerKind& kind, const Tensor& x, const Tensor& part) {
  Tensor dropped = call([&](Tensor h) { return m.dropout(kind.residual_dropout, std::move(h)); }, part);
  return t::add(x, std::move(dropped));
}

// MPTBlock
Tensor block(LlmFoundryModules& m, const LayerKind& kind, Tensor given, const Packing& packing) {
  const Tensor normed = m.normed(kind.input_norm, given);
  const Tensor attended = call([&](Tensor h) { return attention(m, kind.attention, std::move(h), packing); }, normed);
  const Tensor x = added(m, kind, given, attended);
  const Tensor second = m.normed(kind.post_attention_norm, x);
  const Tensor fed = call([&](Tensor h) { return feed_forward(m, kind.mlp, std::move(h)); }, second);
  return added(m, kind, x, fed);
}

// MPTModel
Tensor body(LlmFoundryModules& m, const Architecture& arch, Tensor ids_in) {
  const Tensor ids = std::move(ids_in);
  t::Context& context = m.context();
  const std::int64_t batch = ids.size(0);
  const std::int64_t seq = ids.size(1);
  const auto look_up = [&](const model::Embedding& table, Tensor rows) {
    return call([&](Tensor i) { return m.embedding(table, std::move(i)); }, std::move(rows));
  };
  Tensor x = look_up(arch.embedding, ids);
  Tensor positions;
  if (arch.positions.weight) {
    positions = t::empty(context, Op::arange, {1, seq}, DType::i64);
    Tensor learned = look_up(arch.positions, positions);
    x = t::add(x, std::move(learned));
  }
  x = call([&](Tensor h) { return m.dropout(arch.embedding_dropout, std::move(h)); }, x);
  const Tensor within = t::empty(context, Op::arange, {seq}, DType::i64);
  Packing packing;
  if (arch.alibi) packing.slopes = slopes_of(context, arch.kinds[0].attention.heads);
  pack(context, batch, seq, packing);
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    x = m.layer(
        i, [&m, &kind, packing, within](Tensor h, Tensor) { return block(m, kind, std::move(h), packing); }, x, {},
        nullptr);
  }
  x = m.normed(arch.final_norm, x);
  return x;
}

Tensor logits_of(LlmFoundryModules& m, const Architecture& arch, Tensor ids_in) {
  const Tensor ids = std::move(ids_in);
  const Tensor hidden = call([&](Tensor i) { return body(m, arch, std::move(i)); }, ids);
  return m.project(arch.head, hidden);
}

// compute_loss_from_logits
Tensor loss_of(const Tensor& logits, const Tensor& labels) {
  t::Context& context = logits.context();
  const Tensor targets = t::empty(context, Op::copy, labels.sizes(), DType::i64);
  Tensor losses;
  {
    Tensor rows = t::view(logits, {-1, logits.size(-1)});
    Tensor wanted = t::view(targets, {-1});
    losses = call([](Tensor x, Tensor y) { return t::kernel_cross_entropy(std::move(x), std::move(y)); },
                  std::move(rows), std::move(wanted));
  }
  {
    const Tensor ignored = t::empty(context, Op::compare, labels.sizes(), DType::boolean);
    t::empty(context, Op::logical_and, {}, DType::boolean);
  }
  Tensor sum = t::sum_all(losses);
  Tensor count;
  {
    const Tensor counts = t::empty(context, Op::compare, labels.sizes(), DType::boolean);
    count = t::empty(context, Op::sum, {}, DType::i64);
  }
  return t::div(std::move(sum), std::move(count));
}

// TokenAccuracy; `targets` are those that are not to be ignored.
void update_accuracy(const Tensor& logits, std::int64_t targets) {
  t::Context& context = logits.context();
  const t::Dims sizes{logits.size(0), logits.size(1)};
  const Tensor best = t::empty(context, Op::maximum, sizes, DType::i64);
  const Tensor counts = t::empty(context, Op::compare, sizes, DType::boolean);
  const Tensor wanted = t::empty(context, Op::index, {targets}, DType::i64);
  const Tensor chosen = t::empty(context, Op::index, {targets}, DType::i64);
  const Tensor equal = t::empty(context, Op::compare, {targets}, DType::boolean);
  t::empty(context, Op::sum, {}, DType::i64);
}

void update_cross_entropy(const Tensor& logits, const Tensor& labels) {
  t::Context& context = logits.context();
  Tensor targets = t::view(labels, {-1});
  Tensor rows = t::view(logits, {targets.size(0), -1});
  const Tensor losses = t::cross_entropy(std::move(rows), targets);
  const Tensor counts = t::empty(context, Op::compare, targets.sizes(), DType::boolean);
  t::empty(context, Op::sum, {}, DType::i64);
}

constexpr std::array<DType, 6> kMetricTypes{DType::f32, DType::i64, DType::f32, DType::i64, DType::i64, DType::i64};

void move_metrics(t::Context& context, ComposerStep& step) {
  for (std::size_t i = 0; i < kMetricTypes.size(); ++i) {
    Tensor moved = t::empty(context, Op::copy, {}, kMetricTypes[i]);
    step.metrics[i] = std::move(moved);
  }
}

}  // namespace

void begin_composer_batch(t::Context& context, ComposerStep& step) {
  if (step.metrics[0]) move_metrics(context, step);
  step.total_loss = t::empty(context, Op::copy, {1}, DType::f32);
  t::empty(context, Op::copy, {}, DType::i64);  // samples, read back at once
}

void llm_foundry_forward(LlmFoundryModules& m, const Architecture& arch, Bound& bound) {
  t::Context& context = m.context();
  {
    const t::AutocastRegion autocast(context, m.autocast());
    Tensor made = call([&](Tensor ids) { return logits_of(m, arch, std::move(ids)); }, bound.inputs);
    bound.logits.resize(1);
    bound.logits[0] = std::move(made);
  }
  const t::AutocastRegion autocast(context, m.autocast());
  const t::Scope named(context, context.intern("loss"));
  Tensor loss = loss_of(bound.logits[0], bound.labels);
  bound.loss = std::move(loss);
}

ComposerLoss composer_loss(const Bound& bound) {
  t::Context& context = bound.loss.context();
  ComposerLoss out;
  out.root = t::empty(context, Op::copy, {1}, DType::f32);
  {
    Tensor mean = t::div_scalar(bound.loss);  // of one element
    t::iadd(out.root, std::move(mean));
  }
  Tensor mean;
  {
    const Tensor copy = t::empty(context, Op::clone, {1}, DType::f32);
    mean = t::empty(context, Op::mean, {}, DType::f32);
  }
  out.share = t::empty(context, Op::mul, {}, DType::f32);
  mean.reset();
  t::mul_scalar_in_place(out.root);
  return out;
}

void update_train_metrics(LlmFoundryModules& m, const Bound& bound, Tensor labels, ComposerStep& step) {
  t::Context& context = m.context();
  const t::NoGrad no_grad(context);
  const t::AutocastRegion autocast(context, m.autocast());
  const t::Scope named(context, context.intern("metrics"));
  if (!step.metrics[0]) move_metrics(context, step);
  step.shifted_labels = std::move(labels);
  const Tensor& wanted = step.shifted_labels;
  const std::int64_t targets = wanted.size(0) * (wanted.size(1) - 1);
  t::empty(context, Op::clone, {wanted.size(0), wanted.size(1) - 1}, DType::i64);
  const Tensor logits = t::detach(bound.logits[0]);
  update_cross_entropy(logits, wanted);  // LanguageCrossEntropy
  update_cross_entropy(logits, wanted);  // LanguagePerplexity
  update_accuracy(logits, targets);
}

namespace {

// A GPT-2 in the manner of MPT: learned positions, biases everywhere.
LayerKind renamed_block(const Architecture& from) {
  const LayerKind& kind = from.kinds[0];
  const model::Attention& a = kind.attention;
  LayerKind out;
  out.name = kind.name;
  model::ParameterList p(out.parameters, true);
  const Dimension hidden = axis(Axis::hidden, from.hidden);
  const Dimension heads = axis(Axis::heads, a.heads, a.head_dim);
  const Dimension fused{{heads.parts[0], heads.parts[0], heads.parts[0]}};
  const Dimension ffn = kind.parameters[static_cast<std::size_t>(kind.mlp.up.weight.index)].dims[1];
  out.input_norm = p.layer_norm("norm_1", hidden);
  out.attention.heads = a.heads;
  out.attention.kv_heads = a.kv_heads;
  out.attention.head_dim = a.head_dim;
  out.attention.qkv = p.linear("attn.Wqkv", hidden, fused, true);
  out.attention.o = p.linear("attn.out_proj", heads, hidden, true);
  out.post_attention_norm = p.layer_norm("norm_2", hidden);
  out.mlp.gated = false;
  out.mlp.activation = kind.mlp.activation;
  out.mlp.up = p.linear("ffn.up_proj", hidden, ffn, true);
  out.mlp.down = p.linear("ffn.down_proj", ffn, hidden, true);
  out.residual_dropout = kind.residual_dropout;
  return out;
}

Architecture learned_positions(const Architecture& from) {
  Architecture out = outline_of(from, "transformer.blocks.");
  const Dimension vocab = axis(Axis::vocab, from.vocab);
  const Dimension hidden = axis(Axis::hidden, from.hidden);
  model::ParameterList p(out.parameters, false);
  out.embedding = p.embedding("transformer.wte", vocab, hidden);
  out.positions = p.embedding("transformer.wpe", axis(Axis::position, from.max_positions), hidden);
  out.layers_at = out.parameters.size();
  out.layers = from.layers;
  out.kinds.push_back(renamed_block(from));
  out.final_norm = p.layer_norm("transformer.norm_f", hidden);
  out.head = p.linear("lm_head", hidden, vocab, false);
  const model::Parameter& head = from.parameters[static_cast<std::size_t>(from.head.weight.index)];
  if (head.tied_to) {
    out.parameters[static_cast<std::size_t>(out.head.weight.index)].tied_to = out.embedding.weight.index;
  }
  out.embedding_dropout = from.embedding_dropout;
  return out;
}

}  // namespace

Expected<Architecture> llm_foundry_architecture(const Architecture& from) {
  constexpr std::int64_t kWidths = 8;  // of a head, that the kernel reads at once
  const auto refuse = [&](std::string_view what) {
    return fail(ErrorCode::unsupported, "--modules",
                fmt::format("llm-foundry's MPT {}; leave --modules at transformers", what));
  };
  if (from.family != "mpt" && from.family != "gpt2") return refuse(fmt::format("is no {}", from.family));
  const model::Attention& a = from.kinds[0].attention;
  if (a.head_dim % kWidths != 0) return refuse(fmt::format("with heads of {} is not in this version", a.head_dim));
  if (from.family == "mpt") return from;
  if (a.upcast) return refuse("has no reorder_and_upcast_attn");
  if (from.kinds[0].mlp.activation != model::Activation::gelu)
    return refuse("has torch.nn.functional's activations, of which gelu alone is in this version");
  return learned_positions(from);
}

}  // namespace ullage::engines::pytorch
