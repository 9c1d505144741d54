// Gemma 4 and the text model of Gemma 3n. Sources: transformers' models/{gemma4,gemma3n}.
#include <fmt/core.h>

#include <algorithm>

#include "model/families/moe.h"
#include "model/families/outline_parts.h"
#include "model/families/outline_vision.h"
#include "model/families/vision_language.h"

namespace ullage::model {
namespace {

struct Gemma {
  DecoderConfig c;
  std::int64_t full_head_dim = 0;  // of layers with full attention
  std::int64_t full_kv_heads = 0;
  std::int64_t shared = 0;     // the last so many layers read another's keys and values
  std::int64_t per_layer = 0;  // width of what each layer is given of each token; 0: nothing
  std::int64_t per_layer_vocab = 0;
  bool keys_are_values = false;  // of layers with full attention
  bool wide_when_shared = false;
  std::vector<OutlineTraits> layers;
};

constexpr std::int32_t kShares = 1;

// As layer_types says; without it every `period`th layer sees everything.
void read_layers(Fields& fields, Gemma& from, std::int64_t period) {
  const std::vector<bool> named = fields.sliding_layers("layer_types", from.c.layers);
  from.layers = same_layers(from.c);
  for (std::int64_t i = 0; i < from.c.layers; ++i) {
    OutlineTraits& traits = from.layers[static_cast<std::size_t>(i)];
    traits.slides = named.empty() ? (i + 1) % period != 0 : named[static_cast<std::size_t>(i)];
    const std::int64_t first_shared = from.c.layers - from.shared;
    traits.variant = from.shared > 0 && first_shared > 0 && i >= first_shared ? kShares : 0;
  }
}

// A layer that shares reads the last layer of its kind that does not.
std::vector<std::int32_t> sources(const Gemma& from) {
  std::vector<std::int32_t> out;
  std::int32_t last[2] = {0, 0};
  for (std::size_t i = 0; i < from.layers.size(); ++i) {
    const OutlineTraits& traits = from.layers[i];
    std::int32_t& of_kind = last[traits.slides ? 1 : 0];
    if (traits.variant != kShares) of_kind = static_cast<std::int32_t>(i);
    out.push_back(of_kind);
  }
  return out;
}

void add_gemma_attention(ParameterList& p, Attention& a, const Gemma& from, const OutlineTraits& traits) {
  const DecoderConfig& c = from.c;
  const std::int64_t dim = traits.slides ? c.head_dim : from.full_head_dim;
  const std::int64_t kv_heads = traits.slides ? c.kv_heads : from.full_kv_heads;
  const Dimension hidden = width(c.hidden);
  const std::string at = "self_attn.";
  a.kv_heads = kv_heads;
  a.head_dim = dim;
  a.q = p.linear(at + "q_proj", hidden, head_width(c.heads, dim), c.qkv_bias);
  a.q_norm = p.rms_norm(at + "q_norm", width(dim));
  if (traits.variant != kShares) {
    a.k_norm = p.rms_norm(at + "k_norm", width(dim));
    a.k = p.linear(at + "k_proj", hidden, kv_width(kv_heads, dim), c.qkv_bias);
    if (traits.slides || !from.keys_are_values)
      a.v = p.linear(at + "v_proj", hidden, kv_width(kv_heads, dim), c.qkv_bias);
  }
  a.o = p.linear(at + "o_proj", head_width(c.heads, dim), hidden, c.qkv_bias);
}

void add_four_norms(ParameterList& p, LayerKind& layer, const std::string& at, std::int64_t hidden) {
  layer.input_norm = p.rms_norm(at + "input_layernorm", width(hidden));
  layer.post_attention_norm = p.rms_norm(at + "post_attention_layernorm", width(hidden));
  layer.feedforward_norm = p.rms_norm(at + "pre_feedforward_layernorm", width(hidden));
  layer.post_feedforward_norm = p.rms_norm(at + "post_feedforward_layernorm", width(hidden));
}

void add_per_layer_input(ParameterList& p, const Gemma& from) {
  if (from.per_layer == 0) return;
  p.linear("per_layer_input_gate", width(from.c.hidden), narrow(from.per_layer), false);
  p.linear("per_layer_projection", narrow(from.per_layer), width(from.c.hidden), false);
  p.rms_norm("post_per_layer_input_norm", width(from.c.hidden));
}

// The embedding of what each layer is given, and its projection.
void add_per_layer_embedding(Architecture& arch, const Gemma& from, const std::string& prefix) {
  if (from.per_layer == 0) return;
  ParameterList p = outside(arch);
  const Dimension all = axis(Axis::hidden, from.c.layers * from.per_layer);
  p.embedding(prefix + "embed_tokens_per_layer", axis(Axis::vocab, from.per_layer_vocab), all);
  p.linear(prefix + "per_layer_model_projection", width(from.c.hidden), all, false);
  p.rms_norm(prefix + "per_layer_projection_norm", narrow(from.per_layer));
}

// --- Gemma 4 ---------------------------------------------------------------------------------------------------------

Gemma read_gemma4(Fields& fields) {
  Gemma out;
  DecoderConfig& c = out.c;
  c = read_sizes(fields, {.vocab = 262144,
                          .hidden = 2304,
                          .intermediate = 9216,
                          .layers = 30,
                          .heads = 8,
                          .kv_heads = 4,
                          .head_dim = 256,
                          .max_positions = 131072,
                          .tied = true});
  read_attention_bias(fields, c);
  c.window = fields.integer("sliding_window", 512, kMaxPositions);
  out.full_head_dim = fields.optional_integer("global_head_dim", 512, kMaxWidth);
  out.keys_are_values = fields.boolean("attention_k_eq_v", false);
  const std::int64_t global = fields.optional_integer("num_global_key_value_heads", c.kv_heads, kMaxWidth);
  out.full_kv_heads = out.keys_are_values ? global : c.kv_heads;
  out.shared = fields.count("num_kv_shared_layers", 0, c.layers);
  out.wide_when_shared = fields.boolean("use_double_wide_mlp", false);
  out.per_layer =
      fields.is_null("hidden_size_per_layer_input") ? 0 : fields.count("hidden_size_per_layer_input", 256, kMaxWidth);
  out.per_layer_vocab = fields.integer("vocab_size_per_layer_input", 262144, kMaxVocab);
  if (fields.boolean("enable_moe_block", false)) {
    c.mixture = {.experts = fields.integer("num_experts", 1, kMaxExperts),
                 .top_k = fields.integer("top_k_experts", 1, kMaxExperts),
                 .intermediate = fields.integer("moe_intermediate_size", 1, kMaxWidth)};
  }
  read_layers(fields, out, 6);
  // The class lets the last layer see everything, whatever the list says.
  if (!out.layers.empty()) out.layers.back().slides = false;
  for (OutlineTraits& traits : out.layers) traits.sparse = c.mixture.experts > 0;
  return out;
}

LayerKind gemma4_layer(const Gemma& from, const OutlineTraits& traits) {
  const DecoderConfig& c = from.c;
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_gemma_attention(p, layer.attention, from, traits);
  const bool wide = from.wide_when_shared && traits.variant == kShares;
  layer.mlp = add_gated(p, "mlp.", c.hidden, wide ? 2 * c.intermediate : c.intermediate);
  add_four_norms(p, layer, "", c.hidden);
  add_stored_buffer(layer, "layer_scalar", {1});
  add_per_layer_input(p, from);
  if (!traits.sparse) return layer;
  p.add("router.scale", {width(c.hidden)});
  p.add("router.per_expert_scale", {axis(Axis::expert, c.mixture.experts)});
  layer.mixture.router = add_router(p, "router.proj", c);
  add_routed(p, layer, "experts.", c.hidden, c.mixture);
  for (const char* norm :
       {"post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"}) {
    p.rms_norm(norm, width(c.hidden));
  }
  return layer;
}

Expected<Architecture> gemma4_text(const JsonObject& config, const std::string& prefix) {
  Fields fields(config);
  return finish(fields, read_gemma4(fields)).map([&](const Gemma& read) {
    Architecture arch = outline(read.c, "gemma4", {.prefix = prefix}, read.layers,
                                [&](const OutlineTraits& traits) { return gemma4_layer(read, traits); });
    add_per_layer_embedding(arch, read, prefix);
    if (read.shared > 0) arch.cache_of = sources(read);
    return arch;
  });
}

// The linear layers of the towers may clamp what goes in and out, by numbers that are stored.
void add_clipped(Architecture& arch, ParameterList& p, const std::string& name, const Dimension& in,
                 const Dimension& out, bool clips) {
  p.linear(name + ".linear", in, out, false);
  if (!clips) return;
  for (const char* bound : {".input_min", ".input_max", ".output_min", ".output_max"})
    arch.buffers.push_back({name + bound, {}, DType::f32, true, true});
}

void add_gemma4_eye(Architecture& arch, Fields& f) {
  const std::int64_t hidden = f.integer("hidden_size", 768, kMaxWidth);
  const std::int64_t ffn = f.integer("intermediate_size", 3072, kMaxWidth);
  const std::int64_t layers = f.integer("num_hidden_layers", 16, kMaxLayers);
  const std::int64_t heads = f.integer("num_attention_heads", 12, kMaxWidth);
  const std::int64_t kv_heads = f.integer("num_key_value_heads", heads, kMaxWidth);
  const std::int64_t dim = f.integer("head_dim", 64, 1 << 16);
  const std::int64_t patch = f.integer("patch_size", 16, 1 << 12);
  const std::int64_t positions = f.integer("position_embedding_size", 10240, kMaxPositions);
  const bool clips = f.boolean("use_clipped_linears", false);
  const bool standardize = f.boolean("standardize", false);
  if (f.error()) return;
  ParameterList p = outside(arch);
  const std::string at = "model.vision_tower.";
  p.add(at + "patch_embedder.position_embedding_table",
        {axis(Axis::kernel, 2), axis(Axis::position, positions), width(hidden)});
  p.linear(at + "patch_embedder.input_proj", axis(Axis::channels, 3 * patch * patch), width(hidden), false);
  write_layers(p, at + "encoder.layers", layers, [&](ParameterList& list, const std::string& layer) {
    const Dimension q = head_width(heads, dim);
    const Dimension kv = kv_width(kv_heads, dim);
    add_clipped(arch, list, layer + "self_attn.q_proj", width(hidden), q, clips);
    add_clipped(arch, list, layer + "self_attn.k_proj", width(hidden), kv, clips);
    add_clipped(arch, list, layer + "self_attn.v_proj", width(hidden), kv, clips);
    add_clipped(arch, list, layer + "self_attn.o_proj", q, width(hidden), clips);
    list.rms_norm(layer + "self_attn.q_norm", width(dim));
    list.rms_norm(layer + "self_attn.k_norm", width(dim));
    add_clipped(arch, list, layer + "mlp.gate_proj", width(hidden), ffn_width(ffn), clips);
    add_clipped(arch, list, layer + "mlp.up_proj", width(hidden), ffn_width(ffn), clips);
    add_clipped(arch, list, layer + "mlp.down_proj", ffn_width(ffn), width(hidden), clips);
    LayerKind unused;
    add_four_norms(list, unused, layer, hidden);
  });
  p.linear("model.embed_vision.embedding_projection", width(hidden), width(arch.hidden), false);
  if (!standardize) return;
  for (const char* name : {"std_bias", "std_scale"})
    arch.buffers.push_back({at + name, {hidden}, DType::f32, true, true});
}

void add_conformer_layer(Architecture& arch, ParameterList& p, const std::string& at, std::int64_t hidden,
                         std::int64_t heads, std::int64_t kernel, bool clips) {
  const Dimension wide = width(hidden);
  for (const char* part : {"feed_forward1.", "feed_forward2."}) {
    add_clipped(arch, p, at + part + "ffw_layer_1", wide, ffn_width(4 * hidden), clips);
    add_clipped(arch, p, at + part + "ffw_layer_2", ffn_width(4 * hidden), wide, clips);
    p.rms_norm(at + part + "pre_layer_norm", wide);
    p.rms_norm(at + part + "post_layer_norm", wide);
  }
  p.add(at + "self_attn.per_dim_scale", {width(hidden / heads)});
  for (const char* name : {"q_proj", "k_proj", "v_proj", "post"})
    add_clipped(arch, p, at + "self_attn." + name, wide, wide, clips);
  p.linear(at + "self_attn.relative_k_proj", wide, wide, false);
  add_clipped(arch, p, at + "lconv1d.linear_start", wide, joined({wide, wide}), clips);
  add_clipped(arch, p, at + "lconv1d.linear_end", wide, wide, clips);
  p.add(at + "lconv1d.depthwise_conv1d.weight", {wide, axis(Axis::kernel, 1), axis(Axis::kernel, kernel)});
  for (const char* norm :
       {"lconv1d.pre_layer_norm", "lconv1d.conv_norm", "norm_pre_attn", "norm_post_attn", "norm_out"})
    p.rms_norm(at + norm, wide);
}

void add_gemma4_ear(Architecture& arch, Fields& f) {
  const std::int64_t hidden = f.integer("hidden_size", 1024, kMaxWidth);
  const std::int64_t layers = f.integer("num_hidden_layers", 12, kMaxLayers);
  const std::int64_t heads = f.integer("num_attention_heads", 8, kMaxWidth);
  const std::int64_t kernel = f.integer("conv_kernel_size", 5, 1024);
  const std::int64_t out = f.integer("output_proj_dims", 1536, kMaxWidth);
  const bool clips = f.boolean("use_clipped_linears", true);
  if (f.error()) return;
  ParameterList p = outside(arch);
  const std::string at = "model.audio_tower.";
  const Dimension three = axis(Axis::kernel, 3);
  const Dimension first = axis(Axis::channels, 128);  // subsampling_conv_channels
  const Dimension second = axis(Axis::channels, 32);
  const std::string sub = at + "subsample_conv_projection.";
  p.add(sub + "layer0.conv.weight", {first, axis(Axis::channels, 1), three, three});
  p.rms_norm(sub + "layer0.norm", first);
  p.add(sub + "layer1.conv.weight", {second, first, three, three});
  p.rms_norm(sub + "layer1.norm", second);
  p.linear(sub + "input_proj_linear", axis(Axis::channels, 32 * 32), width(hidden), false);
  write_layers(p, at + "layers", layers, [&](ParameterList& list, const std::string& layer) {
    add_conformer_layer(arch, list, layer, hidden, heads, kernel, clips);
  });
  p.linear(at + "output_proj", width(hidden), width(out), true);
  p.linear("model.embed_audio.embedding_projection", width(out), width(arch.hidden), false);
}

// --- Gemma 3n: text --------------------------------------------------------------------------------------------------

struct Gemma3n {
  Gemma gemma;
  std::int64_t streams = 0;  // altup: residual streams of which one is computed
  std::int64_t rank = 0;     // laurel: a low-rank path around attention
};

// intermediate_size is a number or one for each layer, all the same in what is published.
std::int64_t read_width(Fields& fields) {
  constexpr std::string_view kKey = "intermediate_size";
  const Json* given = fields.config().find(kKey);
  if (given == nullptr || !given->is_array()) return fields.integer(kKey, 16384, kMaxWidth);
  const bool same = !given->empty() && std::all_of(given->begin(), given->end(),
                                                   [&](const Json& entry) { return entry == given->front(); });
  if (!same || !given->front().is_number_integer()) {
    fields.reject(kKey, "differs by layer, which is not modelled");
    return 1;
  }
  const std::int64_t size = given->front().get<std::int64_t>();
  if (size < 1 || size > kMaxWidth) fields.reject(kKey, fmt::format("{} is no width", size));
  return size;
}

Gemma3n read_gemma3n(Fields& fields) {
  Gemma3n out;
  DecoderConfig& c = out.gemma.c;
  c.vocab = fields.integer("vocab_size", 262400, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 2048, kMaxWidth);
  c.intermediate = read_width(fields);
  c.layers = fields.integer("num_hidden_layers", 35, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 8, kMaxWidth);
  c.kv_heads = fields.integer("num_key_value_heads", 2, kMaxWidth);
  c.head_dim = fields.integer("head_dim", 256, kMaxWidth);
  c.max_positions = fields.integer("max_position_embeddings", 32768, kMaxPositions);
  c.tied = fields.boolean("tie_word_embeddings", true);
  c.window = fields.integer("sliding_window", 512, kMaxPositions);
  read_attention_bias(fields, c);
  out.gemma.full_head_dim = c.head_dim;
  out.gemma.full_kv_heads = c.kv_heads;
  out.gemma.shared = fields.count("num_kv_shared_layers", 15, c.layers);
  out.gemma.per_layer = fields.integer("hidden_size_per_layer_input", 256, kMaxWidth);
  out.gemma.per_layer_vocab = fields.integer("vocab_size_per_layer_input", 262144, kMaxVocab);
  out.streams = fields.integer("altup_num_inputs", 4, 64);
  out.rank = fields.integer("laurel_rank", 64, kMaxWidth);
  read_layers(fields, out.gemma, 5);
  return out;
}

LayerKind gemma3n_layer(const Gemma3n& from, const OutlineTraits& traits) {
  const DecoderConfig& c = from.gemma.c;
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  const Dimension hidden = width(c.hidden);
  const Dimension streams = narrow(from.streams);
  add_gemma_attention(p, layer.attention, from.gemma, traits);
  layer.mlp = add_gated(p, "mlp.", c.hidden, c.intermediate);
  add_four_norms(p, layer, "", c.hidden);
  p.add("altup.correct_output_scale", {hidden});
  p.linear("altup.correction_coefs", streams, streams, false);
  p.linear("altup.prediction_coefs", streams, narrow(from.streams * from.streams), false);
  p.linear("altup.modality_router", hidden, streams, false);
  p.rms_norm("altup.router_norm", hidden);
  p.linear("laurel.linear_left", hidden, narrow(from.rank), false);
  p.linear("laurel.linear_right", narrow(from.rank), hidden, false);
  p.rms_norm("laurel.post_laurel_norm", hidden);
  add_per_layer_input(p, from.gemma);
  return layer;
}

}  // namespace

Expected<Architecture> outline_gemma4_text(const JsonObject& config) { return gemma4_text(config, "model."); }

// Towers are there where their configurations are.
Expected<Architecture> outline_gemma4(const JsonObject& config) {
  const Json none = Json::object();
  auto arch = gemma4_text(nested_config(config, "text_config", none), "model.language_model.");
  if (!arch) return arch;
  const JsonObject vision = nested_config(config, "vision_config", none);
  const JsonObject sound = nested_config(config, "audio_config", none);
  Fields vision_fields(vision);
  Fields sound_fields(sound);
  if (config.has("vision_config")) add_gemma4_eye(*arch, vision_fields);
  if (config.has("audio_config")) add_gemma4_ear(*arch, sound_fields);
  for (const Fields* fields : {&vision_fields, &sound_fields}) {
    if (fields->error()) return tl::unexpected<Error>(*fields->error());
  }
  return arch;
}

Expected<Architecture> outline_gemma3n_text(const JsonObject& config) {
  Fields fields(config);
  return finish(fields, read_gemma3n(fields)).map([](const Gemma3n& read) {
    Architecture arch = outline(read.gemma.c, "gemma3n_text", {}, read.gemma.layers,
                                [&](const OutlineTraits& traits) { return gemma3n_layer(read, traits); });
    add_per_layer_embedding(arch, read.gemma, "model.");
    ParameterList p = outside(arch);
    for (const char* name : {"model.altup_projections", "model.altup_unembed_projections"}) {
      for (std::int64_t i = 0; i + 1 < read.streams; ++i)
        p.linear(fmt::format("{}.{}", name, i), width(read.gemma.c.hidden), width(read.gemma.c.hidden), false);
    }
    if (read.gemma.shared > 0) arch.cache_of = sources(read.gemma);
    return arch;
  });
}

}  // namespace ullage::model
