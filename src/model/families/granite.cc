// Granite (transformers: models/granite/modeling_granite.py): Llama with multipliers.
#include "model/families/granite.h"

#include "model/families/llama.h"

namespace ullage::model {
namespace {

Tensor granite_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended =
      call([&](Tensor x) { return llama_attention(m, layer.attention, x, rotary, mask); }, hidden);
  hidden = std::move(attended.output);
  Tensor scaled = tensor::mul_scalar(hidden);
  hidden = tensor::add(residual, std::move(scaled));
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return m.mlp(layer.mlp, x); }, hidden);
  scaled = tensor::mul_scalar(hidden);
  hidden = tensor::add(residual, std::move(scaled));
  return hidden;
}

Expected<DecoderConfig> read_granite_config(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  read_attention_bias(fields, c);
  c.mlp_bias = fields.boolean("mlp_bias", false);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  return finish(fields, std::move(c));
}

}  // namespace

Expected<Architecture> build_granite(const JsonObject& config) {
  return read_granite_config(config).map([](const DecoderConfig& c) {
    Architecture arch = decoder(c, "granite", NormKind::rms, llama_kind);
    arch.multiplies_embeddings = true;
    arch.logits = LogitForm::divided;
    return arch;
  });
}

Output forward_granite(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), granite_layer);
}

}  // namespace ullage::model
