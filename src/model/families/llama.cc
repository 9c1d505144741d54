// Llama and Mistral (transformers: models/llama/modeling_llama.py, models/mistral/modeling_mistral.py).
#include "model/families/llama.h"

#include "model/config_reader.h"

namespace ullage::model {
namespace {

// Gives back the output and the probabilities, which the layer keeps bound though it does not use them.
AttentionOutput attention(Modules& m, const Attention& a, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  const std::int64_t batch = hidden.size(0);
  const std::int64_t seq = hidden.size(1);
  const auto project = [&](const Linear& linear, std::int64_t heads) {
    Tensor x = call([&](Tensor h) { return m.linear(linear, h); }, hidden);
    x = tensor::view(std::move(x), {batch, seq, heads, a.head_dim});
    return tensor::transpose(std::move(x), 1, 2);
  };
  Tensor query = project(a.q, a.heads);
  Tensor key = project(a.k, a.kv_heads);
  Tensor value = project(a.v, a.kv_heads);
  m.apply_rotary(query, key, rotary);
  // query, key, value and the probabilities stay bound to the end of the function.
  AttentionOutput attended = m.attention(a, query, key, value, mask);
  Tensor out = tensor::reshape(std::move(attended.output), {batch, seq, a.heads * a.head_dim});
  out = tensor::contiguous(std::move(out));
  out = call([&](Tensor x) { return m.linear(a.o, x); }, out);
  return {std::move(out), std::move(attended.weights)};
}

Tensor decoder_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended = call([&](Tensor x) { return attention(m, layer.attention, x, rotary, mask); }, hidden);
  hidden = std::move(attended.output);
  hidden = tensor::add(residual, hidden);
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, hidden);
  hidden = tensor::add(residual, hidden);
  return hidden;
}

Tensor body(Modules& m, const Architecture& arch, Tensor ids) {
  Tensor embeds = call([&](Tensor x) { return m.embedding(arch.embedding, x); }, ids);
  const Tensor positions = m.position_ids(embeds);
  const Tensor mask = m.causal_mask(arch.kinds[0].attention, embeds);
  Tensor hidden = embeds;
  const RotaryTables rotary = m.rotary(arch.rotary, hidden, positions);
  // Keyword arguments, position ids among them, live as long as a checkpointed layer.
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& kind = arch.kind_of(i);
    hidden = m.layer(
        i,
        [&m, &kind, rotary, mask, positions](Tensor x, Tensor) {
          return decoder_layer(m, kind, std::move(x), rotary, mask);
        },
        hidden);
  }
  hidden = call([&](Tensor x) { return m.norm(arch.final_norm, x); }, hidden);
  return hidden;
}

LayerKind decoder_kind(const DecoderConfig& c) {
  LayerKind kind;
  kind.name = "decoder";
  ParameterList p(kind.parameters, true);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  const Dimension q = axis(Axis::heads, c.heads, c.head_dim);
  const Dimension kv = axis(Axis::kv_heads, c.kv_heads, c.head_dim);
  const Dimension ffn = axis(Axis::ffn, c.intermediate);
  kind.attention.heads = c.heads;
  kind.attention.kv_heads = c.kv_heads;
  kind.attention.head_dim = c.head_dim;
  kind.attention.dropout = c.attention_dropout;
  kind.attention.window = c.window;
  kind.attention.q = p.linear("self_attn.q_proj", hidden, q, c.attention_bias);
  kind.attention.k = p.linear("self_attn.k_proj", hidden, kv, c.attention_bias);
  kind.attention.v = p.linear("self_attn.v_proj", hidden, kv, c.attention_bias);
  kind.attention.o = p.linear("self_attn.o_proj", q, hidden, c.attention_bias);
  kind.mlp.activation = c.activation;
  kind.mlp.gate = p.linear("mlp.gate_proj", hidden, ffn, c.mlp_bias);
  kind.mlp.up = p.linear("mlp.up_proj", hidden, ffn, c.mlp_bias);
  kind.mlp.down = p.linear("mlp.down_proj", ffn, hidden, c.mlp_bias);
  kind.input_norm = p.rms_norm("input_layernorm", hidden);
  kind.post_attention_norm = p.rms_norm("post_attention_layernorm", hidden);
  return kind;
}

Architecture decoder(const DecoderConfig& c) {
  Architecture arch;
  arch.vocab = c.vocab;
  arch.hidden = c.hidden;
  arch.max_positions = c.max_positions;
  arch.layer_prefix = "model.layers.";
  const Dimension vocab = axis(Axis::vocab, c.vocab);
  const Dimension hidden = axis(Axis::hidden, c.hidden);
  ParameterList p(arch.parameters, false);
  arch.embedding = p.embedding("model.embed_tokens", vocab, hidden);
  arch.layers_at = arch.parameters.size();
  arch.kinds.push_back(decoder_kind(c));
  arch.layers.assign(static_cast<std::size_t>(c.layers), 0);
  arch.final_norm = p.rms_norm("model.norm", hidden);
  arch.head = p.linear("lm_head", hidden, vocab, false);
  if (c.tied) arch.parameters[static_cast<std::size_t>(arch.head.weight.index)].tied_to = arch.embedding.weight.index;
  arch.rotary = c.rotary;
  arch.buffers = rotary_buffers(c.rotary);
  return arch;
}

}  // namespace

Expected<Architecture> build_llama(const JsonObject& config) {
  return read_llama_config(config).map([](const DecoderConfig& c) {
    Architecture arch = decoder(c);
    arch.family = "llama";
    return arch;
  });
}

Expected<Architecture> build_mistral(const JsonObject& config) {
  return read_mistral_config(config).map([](const DecoderConfig& c) {
    Architecture arch = decoder(c);
    arch.family = "mistral";
    return arch;
  });
}

Output forward_llama(Modules& m, const Architecture& arch, Batch batch) {
  const Tensor hidden = call([&](Tensor ids) { return body(m, arch, std::move(ids)); }, batch.inputs);
  Output out;
  out.logits = call([&](Tensor x) { return m.linear(arch.head, x); }, tensor::slice(hidden, 1, 0, hidden.size(1)));
  if (batch.labels) out.loss = m.causal_lm_loss(out.logits, batch.labels);
  return out;
}

}  // namespace ullage::model
