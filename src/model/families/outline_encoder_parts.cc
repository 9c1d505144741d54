#include "model/families/outline_encoder_parts.h"

namespace ullage::model {

EncoderSizes read_encoder(Fields& fields, const EncoderSizes& defaults, const SizeKeys& keys) {
  EncoderSizes out;
  out.vocab = fields.integer("vocab_size", defaults.vocab, kMaxVocab);
  out.hidden = fields.integer(keys.hidden, defaults.hidden, kMaxWidth);
  out.ffn = fields.integer(keys.ffn, defaults.ffn, kMaxWidth);
  out.layers = fields.integer(keys.layers, defaults.layers, kMaxLayers);
  out.heads = fields.integer(keys.heads, defaults.heads, kMaxWidth);
  out.positions = fields.integer(keys.positions, defaults.positions, kMaxPositions);
  if (defaults.types > 0) out.types = fields.integer("type_vocab_size", defaults.types, kMaxVocab);
  check_divides(fields, keys.heads, out.heads, keys.hidden, out.hidden);
  return out;
}

std::string named_class(const JsonObject& config) {
  const auto names = config.strings("architectures");
  return names && !names->empty() ? names->front() : std::string();
}

bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

Architecture encoder(const EncoderSizes& sizes, std::string_view family, std::string layers) {
  Architecture arch;
  arch.family = family;
  arch.vocab = sizes.vocab;
  arch.hidden = sizes.hidden;
  arch.max_positions = sizes.positions;
  arch.layer_prefix = std::move(layers);
  arch.has_final_norm = false;
  return arch;
}

LayerKind encoder_layer(const EncoderSizes& sizes) {
  LayerKind layer;
  layer.name = "encoder";
  layer.attention.heads = layer.attention.kv_heads = sizes.heads;
  layer.attention.head_dim = sizes.hidden / sizes.heads;
  layer.attention.causal = false;
  return layer;
}

void repeat_layer(Architecture& arch, LayerKind layer, std::int64_t count) {
  arch.layers.insert(arch.layers.end(), static_cast<std::size_t>(count), static_cast<std::uint8_t>(arch.kinds.size()));
  arch.kinds.push_back(std::move(layer));
}

void add_bert_embeddings(Architecture& arch, ParameterList& p, const std::string& at, const EncoderSizes& sizes,
                         std::int64_t size) {
  arch.embedding = p.embedding(at + "word_embeddings", axis(Axis::vocab, sizes.vocab), width(size));
  if (sizes.positions > 0)
    arch.positions = p.embedding(at + "position_embeddings", axis(Axis::position, sizes.positions), width(size));
  if (sizes.types > 0)
    arch.token_types = p.embedding(at + "token_type_embeddings", axis(Axis::classes, sizes.types), width(size));
  arch.embedding_norm = p.layer_norm(at + "LayerNorm", width(size));
}

PostNormNames bert_names() {
  return {"attention.self.query",       "attention.self.key", "attention.self.value", "attention.output.dense",
          "attention.output.LayerNorm", "intermediate.dense", "output.dense",         "output.LayerNorm"};
}

void add_post_norm_block(ParameterList& p, Attention& a, const std::string& at, const EncoderSizes& sizes,
                         const PostNormNames& names) {
  add_attention(p, a, at, square_projections(sizes.hidden, sizes.heads, true), {names.q, names.k, names.v, names.o});
  p.layer_norm(at + names.attention_norm, width(sizes.hidden));
  add_plain(p, at, sizes.hidden, sizes.ffn, true, names.up, names.down);
  p.layer_norm(at + names.norm, width(sizes.hidden));
}

LayerKind post_norm_layer(const EncoderSizes& sizes, const PostNormNames& names) {
  LayerKind layer = encoder_layer(sizes);
  ParameterList p(layer.parameters, true);
  add_post_norm_block(p, layer.attention, "", sizes, names);
  return layer;
}

}  // namespace ullage::model
