// Molmo and MiniCPM-V 2.6. Sources: the code published beside their weights; the totals of parameters that their
// checkpoints state.
#include <fmt/core.h>

#include <algorithm>

#include "model/families/llama.h"
#include "model/families/outline_parts.h"
#include "model/families/outline_vision.h"
#include "model/families/vision_language.h"
#include "model/outline.h"

namespace ullage::model {
namespace {

LayerKind molmo_layer(const DecoderConfig& c, const OutlineTraits& traits) {
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  const Dimension hidden = width(c.hidden);
  const Dimension q = head_width(c.heads, c.head_dim);
  const Dimension kv = kv_width(c.kv_heads, c.head_dim);
  const Dimension half = ffn_width(c.intermediate / 2);
  layer.attention.qkv = p.linear("att_proj", hidden, joined({q, kv, kv}), c.qkv_bias);
  layer.attention.o = p.linear("attn_out", q, hidden, false);
  layer.mlp.up = p.linear("ff_proj", hidden, joined({half, half}), false);
  layer.mlp.down = p.linear("ff_out", half, hidden, false);
  layer.input_norm = p.rms_norm("attn_norm", hidden);
  layer.post_attention_norm = p.rms_norm("ff_norm", hidden);
  return layer;
}

// CLIP's large tower of 336 pixels; the code reads its sizes from no file.
struct ClipSizes {
  std::int64_t hidden = 1024;
  std::int64_t ffn = 4096;
  std::int64_t layers = 23;
  std::int64_t heads = 16;
  std::int64_t patch_values = 3 * 14 * 14;
  std::int64_t positions = 577;
};

// Tokens of two layers are looked at, four at a time.
void add_molmo_eye(Architecture& arch, std::int64_t ffn) {
  const ClipSizes clip;
  ParameterList p = outside(arch);
  const Dimension hidden = width(clip.hidden);
  const Dimension two = width(2 * clip.hidden);
  const std::string at = "model.vision_backbone.";
  const std::string vit = at + "image_vit.";
  p.add(vit + "class_embedding", {hidden});
  p.add(vit + "positional_embedding", {axis(Axis::position, clip.positions), hidden});
  p.linear(vit + "patch_embedding", axis(Axis::channels, clip.patch_values), hidden, false);
  p.layer_norm(vit + "pre_ln", hidden);
  write_layers(p, vit + "transformer.resblocks", clip.layers, [&](ParameterList& list, const std::string& layer) {
    Attention unused;
    add_attention(list, unused, layer + "attention.", square_projections(clip.hidden, clip.heads, true),
                  {"wq", "wk", "wv", "wo"});
    add_plain(list, layer + "feed_forward.", clip.hidden, clip.ffn, true, "w1", "w2");
    list.layer_norm(layer + "attention_norm", hidden);
    list.layer_norm(layer + "ffn_norm", hidden);
  });
  p.add(at + "pad_embed", {width(2), two});
  for (const char* name : {"wq", "wk", "wv"})
    p.linear(fmt::format("{}image_pooling_2d.{}", at, name), two, hidden, true);
  p.linear(at + "image_pooling_2d.wo", hidden, hidden, true);
  p.linear(at + "image_projector.w1", hidden, ffn_width(ffn), false);
  p.linear(at + "image_projector.w2", ffn_width(ffn), width(arch.hidden), false);
  p.linear(at + "image_projector.w3", hidden, ffn_width(ffn), false);
}

}  // namespace

Expected<Architecture> outline_molmo(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 50304, .intermediate = 22016, .max_positions = 2048});
  c.qkv_bias = fields.boolean("qkv_bias", false);
  const std::int64_t embedded = fields.optional_integer("embedding_size", c.vocab, kMaxVocab);
  constexpr std::int64_t kMarks = 128;  // additional_vocab_size: embeddings of marks for images
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    Architecture arch =
        outline(read, "molmo",
                {.prefix = "model.transformer.",
                 .embedding = "wte",
                 .layers = "blocks.",
                 .norm = "ln_f",
                 .head = "model.transformer.ff_out"},
                same_layers(read), [&](const OutlineTraits& traits) { return molmo_layer(read, traits); });
    Parameter& table = arch.parameters[static_cast<std::size_t>(arch.embedding.weight.index)];
    table.name = "model.transformer.wte.embedding";
    table.dims[0] = axis(Axis::vocab, embedded);
    ParameterList p = outside(arch);
    p.add("model.transformer.wte.new_embedding", {axis(Axis::vocab, kMarks), width(read.hidden)});
    add_molmo_eye(arch, read.intermediate / 2);
    return arch;
  });
}

// --- MiniCPM-V: SigLIP, whose tokens a resampler looks at
// -------------------------------------------------------------
namespace {

void add_minicpmv_eye(Architecture& arch, Fields& f, std::int64_t queries) {
  const std::int64_t hidden = f.integer("hidden_size", 1152, kMaxWidth);
  const std::int64_t ffn = f.integer("intermediate_size", 4304, kMaxWidth);
  const std::int64_t layers = f.integer("num_hidden_layers", 27, kMaxLayers);
  const std::int64_t heads = f.integer("num_attention_heads", 16, kMaxWidth);
  const std::int64_t patch = f.integer("patch_size", 14, 1 << 12);
  const std::int64_t side = std::max<std::int64_t>(1, f.integer("image_size", 980, 1 << 16) / patch);
  check_divides(f, "num_attention_heads", heads, "hidden_size", hidden);
  if (f.error()) return;
  ParameterList p = outside(arch);
  add_patches(p, "vpm.embeddings.patch_embedding", hidden, 3, patch, 0, true);
  p.embedding("vpm.embeddings.position_embedding", axis(Axis::position, side * side), width(hidden));
  write_layers(p, "vpm.encoder.layers", layers, [&](ParameterList& list, const std::string& layer) {
    add_block(list, layer, {.hidden = hidden, .ffn = ffn, .heads = heads});
  });
  p.layer_norm("vpm.post_layernorm", width(hidden));
  const Dimension text = width(arch.hidden);
  p.add("resampler.query", {axis(Axis::position, queries), text});
  p.add("resampler.proj", {text, text});
  p.linear("resampler.kv_proj", width(hidden), text, false);
  p.add("resampler.attn.in_proj_weight", {joined({text, text, text}), text});
  p.add("resampler.attn.in_proj_bias", {joined({text, text, text})});
  p.linear("resampler.attn.out_proj", text, text, true);
  for (const char* norm : {"ln_q", "ln_kv", "ln_post"}) p.layer_norm(fmt::format("resampler.{}", norm), text);
}

}  // namespace

// Of version 2.6 the text is Qwen2's, whose fields stand beside the tower's; others have other texts.
Expected<Architecture> outline_minicpmv(const JsonObject& config) {
  Fields fields(config);
  const double version = fields.number("version", 0);
  if (version != 2.6) {
    fields.reject("version",
                  fmt::format("{} is not modelled; its text model is named nowhere, 2.6 has Qwen2's", version));
  }
  const std::int64_t queries = fields.integer("query_num", 64, kMaxPositions);
  const Json none = Json::object();
  const JsonObject vision = nested_config(config, "vision_config", none);
  Fields vision_fields(vision);
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  Json text = config.json();
  text["model_type"] = "qwen2";
  auto arch = build_outline(text, config.where());
  if (!arch) return arch;
  arch->family = "minicpmv";
  for (Parameter& parameter : arch->parameters) parameter.name.insert(0, "llm.");
  arch->layer_prefix.insert(0, "llm.");
  add_minicpmv_eye(*arch, vision_fields, queries);
  if (vision_fields.error()) return tl::unexpected<Error>(*vision_fields.error());
  return arch;
}

}  // namespace ullage::model
