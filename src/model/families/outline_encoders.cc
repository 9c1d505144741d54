// Sources: transformers' models/{albert,clip,distilbert,mpnet,nomic_bert,xlm_roberta}. Which head
// stands on an encoder, and what stands in front of its names, says the class that a configuration names.
#include "model/families/outline_encoders.h"

#include <fmt/core.h>

#include "model/families/outline_encoder_parts.h"

namespace ullage::model {
namespace {

// num_labels, or as many as id2label names; two by default.
std::int64_t read_labels(Fields& fields) {
  const Json* labels = fields.config().find("id2label");
  if (labels != nullptr && labels->is_object() && !labels->empty()) return static_cast<std::int64_t>(labels->size());
  return fields.integer("num_labels", 2, kMaxVocab);
}

}  // namespace

// --- XLM-RoBERTa -----------------------------------------------------------------------------------------------------

Expected<Architecture> outline_xlm_roberta(const JsonObject& config) {
  Fields fields(config);
  const EncoderSizes sizes = read_encoder(fields, {30522, 768, 3072, 12, 12, 512, 2});
  const std::int64_t labels = read_labels(fields);
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  const std::string name = named_class(config);
  const bool classifies = ends_with(name, "ForSequenceClassification");
  const bool masked = name.empty() || ends_with(name, "ForMaskedLM");
  const std::string at = classifies || masked ? "roberta." : "";
  Architecture arch = encoder(sizes, "xlm-roberta", at + "encoder.layer.");
  ParameterList p = outside(arch);
  add_bert_embeddings(arch, p, at + "embeddings.", sizes, sizes.hidden);
  // The head's matrix is the embedding's, and PyTorch lists it first.
  if (masked) arch.parameters[static_cast<std::size_t>(arch.embedding.weight.index)].name = "lm_head.decoder.weight";
  arch.layers_at = arch.parameters.size();
  repeat_layer(arch, post_norm_layer(sizes, bert_names()), sizes.layers);
  const Dimension hidden = width(sizes.hidden);
  if (classifies) {
    p.linear("classifier.dense", hidden, hidden, true);
    p.linear("classifier.out_proj", hidden, axis(Axis::classes, labels), true);
  } else if (masked) {
    p.add("lm_head.bias", {axis(Axis::vocab, sizes.vocab)});
    p.linear("lm_head.dense", hidden, hidden, true);
    p.layer_norm("lm_head.layer_norm", hidden);
  } else {
    p.linear("pooler.dense", hidden, hidden, true);
  }
  return arch;
}

// --- DistilBERT ------------------------------------------------------------------------------------------------------

Expected<Architecture> outline_distilbert(const JsonObject& config) {
  Fields fields(config);
  const EncoderSizes sizes =
      read_encoder(fields, {30522, 768, 3072, 6, 12, 512, 0},
                   {.hidden = "dim", .ffn = "hidden_dim", .layers = "n_layers", .heads = "n_heads"});
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  const std::string name = named_class(config);
  const bool bare = name == "DistilBertModel";
  const std::string at = bare ? "" : "distilbert.";
  Architecture arch = encoder(sizes, "distilbert", at + "transformer.layer.");
  ParameterList p = outside(arch);
  add_bert_embeddings(arch, p, at + "embeddings.", sizes, sizes.hidden);
  arch.layers_at = arch.parameters.size();
  repeat_layer(arch,
               post_norm_layer(sizes, {"attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin",
                                       "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"}),
               sizes.layers);
  const Dimension hidden = width(sizes.hidden);
  if (ends_with(name, "ForQuestionAnswering")) {
    p.linear("qa_outputs", hidden, axis(Axis::classes, 2), true);
  } else if (!bare) {
    p.linear("vocab_transform", hidden, hidden, true);
    p.layer_norm("vocab_layer_norm", hidden);
    p.add("vocab_projector.bias", {axis(Axis::vocab, sizes.vocab)});
  }
  return arch;
}

// --- ALBERT: groups of layers share their weights --------------------------------------------------------------------

Expected<Architecture> outline_albert(const JsonObject& config) {
  Fields fields(config);
  const EncoderSizes sizes = read_encoder(fields, {30000, 4096, 16384, 12, 64, 512, 2});
  const std::int64_t narrow_size = fields.integer("embedding_size", 128, kMaxWidth);
  const std::int64_t groups = fields.integer("num_hidden_groups", 1, kMaxLayers);
  const std::int64_t inner = fields.integer("inner_group_num", 1, 64);
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  const bool bare = named_class(config) == "AlbertModel";
  const std::string at = bare ? "" : "albert.";
  Architecture arch = encoder(sizes, "albert", at + "encoder.albert_layer_groups.");
  ParameterList p = outside(arch);
  add_bert_embeddings(arch, p, at + "embeddings.", sizes, narrow_size);
  p.linear(at + "encoder.embedding_hidden_mapping_in", width(narrow_size), width(sizes.hidden), true);
  arch.layers_at = arch.parameters.size();
  LayerKind group = encoder_layer(sizes);
  group.name = "group of layers";
  ParameterList in_group(group.parameters, true);
  const PostNormNames names{"attention.query",     "attention.key", "attention.value", "attention.dense",
                            "attention.LayerNorm", "ffn",           "ffn_output",      "full_layer_layer_norm"};
  for (std::int64_t i = 0; i < inner; ++i)
    add_post_norm_block(in_group, group.attention, fmt::format("albert_layers.{}.", i), sizes, names);
  repeat_layer(arch, std::move(group), groups);
  const Dimension embedded = width(narrow_size);
  if (bare) {
    p.linear("pooler", width(sizes.hidden), width(sizes.hidden), true);
  } else {
    p.add("predictions.bias", {axis(Axis::vocab, sizes.vocab)});
    p.layer_norm("predictions.LayerNorm", embedded);
    p.linear("predictions.dense", width(sizes.hidden), embedded, true);
  }
  return arch;
}

// --- MPNet -----------------------------------------------------------------------------------------------------------

Expected<Architecture> outline_mpnet(const JsonObject& config) {
  Fields fields(config);
  const EncoderSizes sizes = read_encoder(fields, {30527, 768, 3072, 12, 12, 512, 0});
  const std::int64_t buckets = fields.integer("relative_attention_num_buckets", 32, kMaxPositions);
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  const bool bare = named_class(config) == "MPNetModel";
  const std::string at = bare ? "" : "mpnet.";
  Architecture arch = encoder(sizes, "mpnet", at + "encoder.layer.");
  ParameterList p = outside(arch);
  add_bert_embeddings(arch, p, at + "embeddings.", sizes, sizes.hidden);
  arch.layers_at = arch.parameters.size();
  repeat_layer(
      arch,
      post_norm_layer(sizes, {"attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o",
                              "attention.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"}),
      sizes.layers);
  p.embedding(at + "encoder.relative_attention_bias", axis(Axis::position, buckets), axis(Axis::heads, sizes.heads));
  const Dimension hidden = width(sizes.hidden);
  if (bare) {
    p.linear("pooler.dense", hidden, hidden, true);
  } else {
    p.add("lm_head.bias", {axis(Axis::vocab, sizes.vocab)});
    p.linear("lm_head.dense", hidden, hidden, true);
    p.layer_norm("lm_head.layer_norm", hidden);
  }
  return arch;
}

// --- Nomic's BERT: rotary positions, a gated feed-forward
// -------------------------------------------------------------

Expected<Architecture> outline_nomic_bert(const JsonObject& config) {
  // Files of the first release have GPT-2's words.
  const bool first = config.has("n_embd");
  Fields fields(config);
  EncoderSizes sizes =
      read_encoder(fields, {30528, 768, 3072, 12, 12, 2048, 2},
                   first ? SizeKeys{"n_embd", "n_inner", "n_layer", "n_head", "n_positions"} : SizeKeys{});
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  Architecture arch = encoder(sizes, "nomic_bert", "layers.");
  ParameterList p = outside(arch);
  EncoderSizes embedded = sizes;
  embedded.positions = 0;
  add_bert_embeddings(arch, p, "embeddings.", embedded, sizes.hidden);
  arch.layers_at = arch.parameters.size();
  LayerKind layer = encoder_layer(sizes);
  ParameterList in_layer(layer.parameters, true);
  in_layer.layer_norm("post_attention_layernorm", width(sizes.hidden));
  layer.mlp = add_gated(in_layer, "mlp.", sizes.hidden, sizes.ffn);
  add_attention(in_layer, layer.attention, "self_attn.", square_projections(sizes.hidden, sizes.heads, false));
  in_layer.layer_norm("post_mlp_layernorm", width(sizes.hidden));
  repeat_layer(arch, std::move(layer), sizes.layers);
  return arch;
}

// --- CLIP's text model -----------------------------------------------------------------------------------------------

Expected<Architecture> outline_clip_text(const JsonObject& config) {
  Fields fields(config);
  const EncoderSizes sizes = read_encoder(fields, {49408, 512, 2048, 12, 8, 77, 0});
  const std::int64_t projection = fields.integer("projection_dim", 512, kMaxWidth);
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  const bool projects = ends_with(named_class(config), "WithProjection");
  const std::string at = projects ? "text_model." : "";
  Architecture arch = encoder(sizes, "clip_text_model", at + "encoder.layers.");
  ParameterList p = outside(arch);
  arch.embedding = p.embedding(at + "embeddings.token_embedding", axis(Axis::vocab, sizes.vocab), width(sizes.hidden));
  arch.positions =
      p.embedding(at + "embeddings.position_embedding", axis(Axis::position, sizes.positions), width(sizes.hidden));
  arch.layers_at = arch.parameters.size();
  LayerKind layer = encoder_layer(sizes);
  ParameterList in_layer(layer.parameters, true);
  add_block(in_layer, "", {.hidden = sizes.hidden, .ffn = sizes.ffn, .heads = sizes.heads});
  repeat_layer(arch, std::move(layer), sizes.layers);
  arch.has_final_norm = true;
  arch.final_norm = p.layer_norm(at + "final_layer_norm", width(sizes.hidden));
  if (projects) p.linear("text_projection", width(sizes.hidden), width(projection), false);
  return arch;
}

}  // namespace ullage::model
