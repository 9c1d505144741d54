// Encoders of images and sound: DINOv2, BLIP, WavLM. Sources: transformers' models/{blip,dinov2,wavlm}.
#include <fmt/core.h>

#include <algorithm>

#include "model/families/outline_encoder_parts.h"
#include "model/families/outline_encoders.h"
#include "model/families/vision_language.h"

namespace ullage::model {
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
  add_post_norm_block(p, layer.attention, "", sizes, bert_names());
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
