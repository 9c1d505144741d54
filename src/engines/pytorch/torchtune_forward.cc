// torchtune's decoder and losses (torchtune/modules/, recipes/*_single_device.py).
#include "engines/pytorch/torchtune.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::call;
using model::LayerKind;
using t::Tensor;

namespace {

constexpr std::int64_t kChunks = 8;  // CEWithChunkedOutputLoss' num_output_chunks

// One component of the pairs times one of the turns.
Tensor component(const Tensor& pairs, int x, const Tensor& turns, int turn) {
  const Tensor value = t::select(pairs, -1, x);
  const Tensor factor = t::select(turns, -1, turn);
  return t::mul(value, factor);
}

// Llama3ScaledRoPE.forward: neighbouring dimensions are pairs, turned in fp32. x [batch, seq, heads, dim].
Tensor apply_rope(Tensor x_in, const Tensor& cache) {
  const Tensor x = std::move(x_in);
  const std::int64_t seq = x.size(1);
  Tensor pairs = t::to(x, DType::f32);
  pairs = t::reshape(std::move(pairs), {x.size(0), seq, x.size(2), -1, 2});
  Tensor turns = t::slice(cache, 0, 0, seq);
  turns = t::view(std::move(turns), {-1, seq, 1, pairs.size(3), 2});
  Tensor real;
  {
    Tensor straight = component(pairs, 0, turns, 0);
    Tensor crossed = component(pairs, 1, turns, 1);
    real = t::sub(std::move(straight), std::move(crossed));
  }
  Tensor imaginary;
  {
    Tensor straight = component(pairs, 1, turns, 0);
    Tensor crossed = component(pairs, 0, turns, 1);
    imaginary = t::add(std::move(straight), std::move(crossed));
  }
  Tensor out = t::stack_last({std::move(real), std::move(imaginary)});
  out = t::view(std::move(out), x.sizes());
  return t::to(out, x.dtype());
}

// A copy for each query head.
Tensor for_all_heads(Tensor x_in, std::int64_t times) {
  Tensor x = std::move(x_in);
  const t::Dims wide{x.size(0), x.size(1), times, x.size(2), x.size(3)};
  const t::Dims merged{x.size(0), x.size(1) * times, x.size(2), x.size(3)};
  x = t::unsqueeze(std::move(x), 2);
  x = t::expand(std::move(x), wide);
  return t::reshape(std::move(x), merged);
}

Tensor attention(TorchtuneModules& m, const model::Attention& a, Tensor x_in, const Tensor& cache) {
  const Tensor x = std::move(x_in);
  const std::int64_t batch = x.size(0);
  const std::int64_t seq = x.size(1);
  Tensor query = m.project(a.q, x);
  query = t::view(std::move(query), {batch, seq, a.heads, a.head_dim});
  query = call([&](Tensor h) { return apply_rope(std::move(h), cache); }, query);
  query = t::transpose(std::move(query), 1, 2);
  Tensor key = m.project(a.k, x);
  Tensor value = m.project(a.v, x);
  key = t::view(std::move(key), {batch, seq, -1, a.head_dim});
  value = t::view(std::move(value), {batch, seq, -1, a.head_dim});
  key = call([&](Tensor h) { return apply_rope(std::move(h), cache); }, key);
  key = t::transpose(std::move(key), 1, 2);
  value = t::transpose(std::move(value), 1, 2);
  if (a.heads != a.kv_heads) {
    key = for_all_heads(key, a.heads / a.kv_heads);
    value = for_all_heads(value, a.heads / a.kv_heads);
  }
  const t::Scope named(m.context(), m.context().intern("attention"));
  Tensor output = t::scaled_dot_product_attention(query, key, value, {}, 0, false);
  {
    Tensor turned = t::transpose(output, 1, 2);
    turned = t::contiguous(std::move(turned));
    output = t::view(std::move(turned), {batch, seq, -1});
  }
  return m.project(a.o, output);
}

Tensor feed_forward(TorchtuneModules& m, const model::Mlp& mlp, Tensor x_in) {
  const Tensor x = std::move(x_in);
  Tensor h;
  {
    Tensor gate = m.project(mlp.gate, x);
    h = call([&](Tensor g) { return m.activation(mlp.activation, std::move(g)); }, std::move(gate));
  }
  {
    Tensor up = m.project(mlp.up, x);
    h = t::mul(h, std::move(up));
  }
  return m.project(mlp.down, h);
}

Tensor layer(TorchtuneModules& m, const LayerKind& kind, Tensor x_in, const Tensor& cache) {
  if (m.step_options().compile) return torchtune_compiled_layer(m, kind, std::move(x_in), cache);
  const Tensor x = std::move(x_in);
  Tensor h = m.normed(kind.input_norm, x);
  const Tensor attended = call([&](Tensor n) { return attention(m, kind.attention, std::move(n), cache); }, h);
  h = t::add(attended, x);
  Tensor second = m.normed(kind.post_attention_norm, h);
  const Tensor fed = call([&](Tensor n) { return feed_forward(m, kind.mlp, std::move(n)); }, std::move(second));
  return t::add(h, fed);
}

std::int64_t chunk_of(std::int64_t tokens) { return (tokens + kChunks - 1) / kChunks; }

// What the head saves stays on the card (get_act_offloading_ctx_manager).
Tensor head(TorchtuneModules& m, const model::Architecture& arch, const Tensor& h) {
  const t::Restore<bool> offloading(m.context().offloading, false);
  return m.project(arch.head, h);
}

std::vector<Tensor> decoder(TorchtuneModules& m, const model::Architecture& arch, Tensor ids_in) {
  const Tensor ids = std::move(ids_in);
  const t::Restore<bool> offloading(m.context().offloading, m.step_options().offload_activations);
  const Tensor cache = m.model_buffer(1);
  Tensor h = call([&](Tensor i) { return m.embedding(arch.embedding, std::move(i)); }, ids);
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    h = m.layer(
        i, [&m, &kind, cache](Tensor x, Tensor) { return layer(m, kind, std::move(x), cache); }, h, {}, nullptr);
  }
  h = m.normed(arch.final_norm, h);
  std::vector<Tensor> logits;
  if (m.step_options().loss != Loss::chunked) {
    Tensor whole = head(m, arch, h);
    logits.push_back(t::to(std::move(whole), DType::f32));
    return logits;
  }
  for (const Tensor& chunk : t::split(h, chunk_of(h.size(1)), 1)) logits.push_back(head(m, arch, chunk));
  return logits;
}

// Labels moved by one, and behind them one to be ignored.
Tensor shifted_labels(const Tensor& labels, const Tensor& ignored) {
  Tensor rest = t::slice(labels, 1, 1, labels.size(1));
  Tensor none = t::slice(ignored, 0, 0, labels.size(0));
  return t::cat({std::move(rest), std::move(none)}, 1);
}

Tensor rows_of(const Tensor& logits) { return t::reshape(logits, {-1, logits.size(-1)}); }

// compute_cross_entropy, which is what is compiled.
Tensor loss_of_chunk(const Tensor& logits, const Tensor& labels, bool compiled) {
  Tensor rows = rows_of(logits);
  if (compiled) return t::compiled_cross_entropy(std::move(rows), labels, false);
  Tensor wide = t::to(std::move(rows), DType::f32);
  return t::cross_entropy(std::move(wide), labels);
}

// CEWithChunkedOutputLoss.forward: sums by chunk, over the number of labels that count.
Tensor loss_of_chunks(const std::vector<Tensor>& logits, const Tensor& labels, bool compiled) {
  t::Context& context = labels.context();
  Tensor count;
  {
    const Tensor counts = t::empty(context, t::Op::compare, labels.sizes(), DType::boolean);
    count = t::empty(context, t::Op::sum, {}, DType::i64);
  }
  std::vector<Tensor> wanted;
  for (const Tensor& part : t::split(labels, chunk_of(labels.size(1)), 1)) wanted.push_back(t::reshape(part, {-1}));
  Tensor total;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    Tensor loss = loss_of_chunk(logits[i], wanted[i], compiled);
    if (total) t::iadd(total, std::move(loss));
    else total = t::add_scalar(std::move(loss));
  }
  Tensor mean = t::div(std::move(total), count);
  for (Tensor& part : wanted) part.reset();
  return mean;
}

}  // namespace

void torchtune_forward(TorchtuneModules& m, const model::Architecture& arch, Bound& bound) {
  t::Context& context = m.context();
  const bool compiled = m.step_options().compile;
  Tensor tokens;
  {
    const Tensor counts = t::empty(context, t::Op::compare, bound.labels.sizes(), DType::boolean);
    tokens = t::empty(context, t::Op::sum, {}, DType::i64);
  }
  if (!bound.tokens) bound.tokens = t::empty(context, t::Op::add, {}, DType::i64);
  Tensor loss;
  {
    std::vector<Tensor> logits = call([&](Tensor ids) { return decoder(m, arch, std::move(ids)); }, bound.inputs);
    const t::Scope named(context, context.intern("loss"));
    const Tensor ignored = m.model_buffer(2);
    Tensor labels = shifted_labels(bound.labels, ignored);
    bound.labels.reset();
    if (m.step_options().loss == Loss::chunked) {
      loss = loss_of_chunks(logits, labels, compiled);
    } else {
      labels = t::reshape(std::move(labels), {-1});
      Tensor rows = rows_of(logits[0]);
      // full_finetune_single_device.py drops the compiled loss that compile_loss returns; its LoRA sister takes it.
      const bool adapted = m.step_options().tuning.tuner != model::Tuner::none;
      loss = compiled && adapted ? t::compiled_cross_entropy(std::move(rows), labels, true)
                                 : t::cross_entropy(std::move(rows), labels);
    }
    for (Tensor& chunk : logits) chunk.reset();
  }
  // Times the number of tokens, so that accumulated steps can be divided by all of them.
  bound.loss = t::mul(std::move(loss), std::move(tokens));
  if (bound.running) t::iadd(bound.running, bound.loss);
  else bound.running = t::add_scalar(bound.loss);
}

}  // namespace ullage::engines::pytorch
