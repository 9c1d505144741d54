// Sources: transformers' models/{albert,blip,clip,dinov2,distilbert,mpnet,nomic_bert,wavlm,xlm_roberta}. Which head
// stands on an encoder, and what stands in front of its names, says the class that a configuration names.
#include "model/families/outline_encoders.h"

#include <fmt/core.h>

#include <algorithm>

#include "model/families/outline_parts.h"
#include "model/families/vision_language.h"

namespace ullage::model {
namespace {

struct EncoderSizes {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t positions = 0;
  std::int64_t types = 0;  // token types; 0: none
};

struct SizeKeys {
  std::string_view hidden = "hidden_size";
  std::string_view ffn = "intermediate_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view positions = "max_position_embeddings";
};

EncoderSizes read_encoder(Fields& fields, const EncoderSizes& defaults, const SizeKeys& keys = {}) {
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

// The class that the file names first; empty: none.
std::string named_class(const JsonObject& config) {
  const auto names = config.strings("architectures");
  return names && !names->empty() ? names->front() : std::string();
}

bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

// An architecture without layers yet, whose embeddings are added by `embed`.
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

// Names in a block whose norms follow what they norm.
struct PostNormNames {
  std::string q, k, v, o, attention_norm, up, down, norm;
};

const PostNormNames kBert{
    "attention.self.query",       "attention.self.key", "attention.self.value", "attention.output.dense",
    "attention.output.LayerNorm", "intermediate.dense", "output.dense",         "output.LayerNorm"};

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
  repeat_layer(arch, post_norm_layer(sizes, kBert), sizes.layers);
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
  const std::string at = "text_model.";
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

// --- DINOv2 ----------------------------------------------------------------------------------------------------------
namespace {

struct Dino {
  std::int64_t hidden = 0, ffn = 0, heads = 0;
  bool gated = false, qkv_bias = true;
};

LayerKind dino_layer(const Dino& from) {
  LayerKind layer;
  layer.name = "encoder";
  layer.attention.causal = false;
  ParameterList p(layer.parameters, true);
  const Dimension hidden = width(from.hidden);
  Projections projections = square_projections(from.hidden, from.heads, true);
  projections.q_bias = projections.k_bias = projections.v_bias = from.qkv_bias;
  p.layer_norm("norm1", hidden);
  add_attention(p, layer.attention, "attention.", projections,
                {"attention.query", "attention.key", "attention.value", "output.dense"});
  p.add("layer_scale1.lambda1", {hidden});
  p.layer_norm("norm2", hidden);
  if (from.gated) {
    // Two thirds of the width for the gate's sake, up to a multiple of eight.
    const std::int64_t ffn = (from.ffn * 2 / 3 + 7) / 8 * 8;
    p.linear("mlp.weights_in", hidden, joined({ffn_width(ffn), ffn_width(ffn)}), true);
    p.linear("mlp.weights_out", ffn_width(ffn), hidden, true);
  } else {
    layer.mlp = add_plain(p, "mlp.", from.hidden, from.ffn, true, "fc1", "fc2");
  }
  p.add("layer_scale2.lambda1", {hidden});
  return layer;
}

}  // namespace

Expected<Architecture> outline_dinov2(const JsonObject& config) {
  Fields fields(config);
  Dino from;
  from.hidden = fields.integer("hidden_size", 768, kMaxWidth);
  from.heads = fields.integer("num_attention_heads", 12, kMaxWidth);
  from.ffn = from.hidden * fields.integer("mlp_ratio", 4, 1 << 10);
  from.gated = fields.boolean("use_swiglu_ffn", false);
  from.qkv_bias = fields.boolean("qkv_bias", true);
  const std::int64_t layers = fields.integer("num_hidden_layers", 12, kMaxLayers);
  const std::int64_t channels = fields.integer("num_channels", 3, 1 << 12);
  const std::int64_t patch = fields.integer("patch_size", 14, 1 << 12);
  const std::int64_t side = std::max<std::int64_t>(1, fields.integer("image_size", 224, 1 << 16) / patch);
  check_divides(fields, "num_attention_heads", from.heads, "hidden_size", from.hidden);
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  Architecture arch = encoder({.hidden = from.hidden}, "dinov2", "encoder.layer.");
  arch.input = InputKind::images;
  ParameterList p = outside(arch);
  const Dimension hidden = width(from.hidden);
  p.add("embeddings.cls_token", {width(1), width(1), hidden});
  p.add("embeddings.mask_token", {width(1), hidden});
  p.add("embeddings.position_embeddings", {width(1), axis(Axis::position, side * side + 1), hidden});
  add_patches(p, "embeddings.patch_embeddings.projection", from.hidden, channels, patch, 0, true);
  arch.layers_at = arch.parameters.size();
  repeat_layer(arch, dino_layer(from), layers);
  p.layer_norm("layernorm", hidden);
  return arch;
}

// --- BLIP: a vision transformer and a BERT that attends to it --------------------------------------------------------
namespace {

LayerKind blip_text_layer(const EncoderSizes& sizes, std::int64_t seen) {
  LayerKind layer = encoder_layer(sizes);
  layer.name = "decoder";
  layer.attention.causal = true;
  ParameterList p(layer.parameters, true);
  const Dimension hidden = width(sizes.hidden);
  add_post_norm_block(p, layer.attention, "", sizes, kBert);
  const std::string at = "crossattention.";
  Attention& cross = layer.cross_attention;
  cross.heads = cross.kv_heads = sizes.heads;
  cross.head_dim = sizes.hidden / sizes.heads;
  const Dimension heads = head_width(cross.heads, cross.head_dim);
  cross.q = p.linear(at + "self.query", hidden, heads, true);
  cross.k = p.linear(at + "self.key", width(seen), heads, true);
  cross.v = p.linear(at + "self.value", width(seen), heads, true);
  cross.o = p.linear(at + "output.dense", heads, hidden, true);
  layer.cross_norm = p.layer_norm(at + "output.LayerNorm", hidden);
  return layer;
}

void add_blip_tower(ParameterList& p, Fields& f) {
  const std::int64_t hidden = f.integer("hidden_size", 768, kMaxWidth);
  const std::int64_t ffn = f.integer("intermediate_size", 3072, kMaxWidth);
  const std::int64_t layers = f.integer("num_hidden_layers", 12, kMaxLayers);
  const std::int64_t heads = f.integer("num_attention_heads", 12, kMaxWidth);
  const std::int64_t patch = f.integer("patch_size", 16, 1 << 12);
  const std::int64_t side = std::max<std::int64_t>(1, f.integer("image_size", 384, 1 << 16) / patch);
  check_divides(f, "num_attention_heads", heads, "hidden_size", hidden);
  if (f.error()) return;
  const std::string at = "vision_model.";
  const AxisPart parts{Axis::heads, heads, hidden / heads};
  p.add(at + "embeddings.class_embedding", {width(1), width(1), width(hidden)});
  p.add(at + "embeddings.position_embedding", {width(1), axis(Axis::position, side * side + 1), width(hidden)});
  add_patches(p, at + "embeddings.patch_embedding", hidden, 3, patch, 0, true);
  write_layers(p, at + "encoder.layers", layers, [&](ParameterList& list, const std::string& layer) {
    list.linear(layer + "self_attn.qkv", width(hidden), {{parts, parts, parts}}, true);
    list.linear(layer + "self_attn.projection", {{parts}}, width(hidden), true);
    list.layer_norm(layer + "layer_norm1", width(hidden));
    add_plain(list, layer + "mlp.", hidden, ffn, true, "fc1", "fc2");
    list.layer_norm(layer + "layer_norm2", width(hidden));
  });
  p.layer_norm(at + "post_layernorm", width(hidden));
}

}  // namespace

Expected<Architecture> outline_blip(const JsonObject& config) {
  const Json none = Json::object();
  const JsonObject text = nested_config(config, "text_config", none);
  const JsonObject vision = nested_config(config, "vision_config", none);
  Fields fields(text);
  Fields vision_fields(vision);
  const EncoderSizes sizes = read_encoder(fields, {30524, 768, 3072, 12, 8, 512, 0});
  const std::int64_t seen = vision_fields.integer("hidden_size", 768, kMaxWidth);
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  const std::string at = "text_decoder.bert.";
  Architecture arch = encoder(sizes, "blip", at + "encoder.layer.");
  ParameterList p = outside(arch);
  add_bert_embeddings(arch, p, at + "embeddings.", sizes, sizes.hidden);
  arch.layers_at = arch.parameters.size();
  repeat_layer(arch, blip_text_layer(sizes, seen), sizes.layers);
  const std::string head = "text_decoder.cls.predictions.";
  p.add(head + "bias", {axis(Axis::vocab, sizes.vocab)});
  p.linear(head + "transform.dense", width(sizes.hidden), width(sizes.hidden), true);
  p.layer_norm(head + "transform.LayerNorm", width(sizes.hidden));
  add_blip_tower(p, vision_fields);
  if (vision_fields.error()) return tl::unexpected<Error>(*vision_fields.error());
  return arch;
}

// --- WavLM -----------------------------------------------------------------------------------------------------------
namespace {

std::vector<std::int64_t> read_sizes_of(Fields& fields, std::string_view key, std::vector<std::int64_t> fallback) {
  const Json* list = fields.config().find(key);
  if (list == nullptr) return fallback;
  std::vector<std::int64_t> out;
  const bool fits = list->is_array() && !list->empty() && list->size() <= 64;
  for (const Json& entry : fits ? *list : Json::array())
    out.push_back(entry.is_number_integer() ? entry.get<std::int64_t>() : std::int64_t{0});
  if (std::any_of(out.begin(), out.end(), [](std::int64_t n) { return n < 1 || n > kMaxWidth; })) out.clear();
  if (out.empty()) fields.reject(key, "is no list of sizes");
  return out;
}

// The first layer alone holds what distances bias scores by.
LayerKind wavlm_layer(const EncoderSizes& sizes, std::int64_t buckets, bool first) {
  LayerKind layer = encoder_layer(sizes);
  ParameterList p(layer.parameters, true);
  const Dimension heads = axis(Axis::heads, sizes.heads);
  const std::string at = "attention.";
  p.add(at + "gru_rel_pos_const", {width(1), heads, width(1), width(1)});
  add_attention(p, layer.attention, at, square_projections(sizes.hidden, sizes.heads, true),
                {"q_proj", "k_proj", "v_proj", "out_proj"});
  p.linear(at + "gru_rel_pos_linear", width(sizes.hidden / sizes.heads), axis(Axis::classes, 8), true);
  if (first) p.embedding(at + "rel_attn_embed", axis(Axis::position, buckets), heads);
  p.layer_norm("layer_norm", width(sizes.hidden));
  add_plain(p, "feed_forward.", sizes.hidden, sizes.ffn, true, "intermediate_dense", "output_dense");
  p.layer_norm("final_layer_norm", width(sizes.hidden));
  return layer;
}

// Convolutions over the waveform; the first is normed, or all are.
void add_feature_extractor(ParameterList& p, const std::vector<std::int64_t>& widths,
                           const std::vector<std::int64_t>& kernels, bool bias, bool norms_all) {
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string at = fmt::format("feature_extractor.conv_layers.{}.", i);
    const Dimension out = axis(Axis::channels, widths[i]);
    p.add(at + "conv.weight", {out, axis(Axis::channels, i == 0 ? 1 : widths[i - 1]), axis(Axis::kernel, kernels[i])});
    if (bias) p.add(at + "conv.bias", {out});
    if (i == 0 || norms_all) p.layer_norm(at + "layer_norm", out);
  }
}

}  // namespace

Expected<Architecture> outline_wavlm(const JsonObject& config) {
  Fields fields(config);
  EncoderSizes sizes = read_encoder(fields, {32, 768, 3072, 12, 12, 1, 0});
  const std::int64_t buckets = fields.integer("num_buckets", 320, kMaxPositions);
  const std::int64_t kernel = fields.integer("num_conv_pos_embeddings", 128, kMaxPositions);
  const std::int64_t groups = fields.integer("num_conv_pos_embedding_groups", 16, kMaxWidth);
  const std::vector<std::int64_t> widths = read_sizes_of(fields, "conv_dim", {512, 512, 512, 512, 512, 512, 512});
  const std::vector<std::int64_t> kernels = read_sizes_of(fields, "conv_kernel", {10, 3, 3, 3, 3, 2, 2});
  const bool bias = fields.boolean("conv_bias", false);
  if (widths.size() != kernels.size()) fields.reject("conv_kernel", "has not as many entries as conv_dim");
  check_divides(fields, "num_conv_pos_embedding_groups", groups, "hidden_size", sizes.hidden);
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  const bool norms_all = config.string("feat_extract_norm", "group").value_or("") == "layer";
  Architecture arch = encoder(sizes, "wavlm", "encoder.layers.");
  arch.input = InputKind::sound;
  arch.vocab = 0;
  ParameterList p = outside(arch);
  const Dimension hidden = width(sizes.hidden);
  p.add("masked_spec_embed", {hidden});
  add_feature_extractor(p, widths, kernels, bias, norms_all);
  p.layer_norm("feature_projection.layer_norm", axis(Axis::channels, widths.back()));
  p.linear("feature_projection.projection", axis(Axis::channels, widths.back()), hidden, true);
  const std::string conv = "encoder.pos_conv_embed.conv.";
  p.add(conv + "bias", {hidden});
  p.add(conv + "parametrizations.weight.original0", {width(1), width(1), axis(Axis::kernel, kernel)});
  p.add(conv + "parametrizations.weight.original1", {hidden, width(sizes.hidden / groups), axis(Axis::kernel, kernel)});
  p.layer_norm("encoder.layer_norm", hidden);
  arch.layers_at = arch.parameters.size();
  repeat_layer(arch, wavlm_layer(sizes, buckets, true), 1);
  if (sizes.layers > 1) repeat_layer(arch, wavlm_layer(sizes, buckets, false), sizes.layers - 1);
  return arch;
}

}  // namespace ullage::model
