// Sources: transformers' models/{bamba,falcon_h1,falcon_mamba,granitemoehybrid,jamba,lfm2,mamba,mamba2,nemotron_h}.
#include "model/families/outline_hybrid.h"

#include <fmt/core.h>

#include <algorithm>

#include "model/families/moe.h"
#include "model/families/outline_parts.h"

namespace ullage::model {
namespace {

// "auto" stands for a sixteenth of the width, rounded up.
std::int64_t read_time_rank(Fields& fields, std::string_view key, std::int64_t hidden) {
  const std::int64_t automatic = (hidden + 15) / 16;
  const Json* given = fields.config().find(key);
  if (given != nullptr && given->is_string() && given->get<std::string>() == "auto") return automatic;
  return fields.integer(key, automatic, kMaxWidth);
}

// Heads of Mamba 2 must fill its inner width.
void check_heads(Fields& fields, std::string_view key, const MambaShape& shape) {
  if (shape.inner % shape.heads == 0) return;
  fields.reject(key,
                fmt::format("{} heads do not divide the inner width {}; change one of them", shape.heads, shape.inner));
}

// The Mamba 2 of Bamba and what came of it: fields that begin with mamba_.
MambaShape read_mamba2(Fields& fields, std::int64_t hidden, std::int64_t heads, std::int64_t groups,
                       std::int64_t state) {
  MambaShape out;
  out.hidden = hidden;
  out.inner = fields.integer("mamba_expand", 2, 1024) * hidden;
  out.heads = fields.integer("mamba_n_heads", heads, kMaxWidth);
  out.groups = fields.integer("mamba_n_groups", groups, kMaxWidth);
  out.state = fields.integer("mamba_d_state", state, kMaxWidth);
  out.kernel = fields.integer("mamba_d_conv", 4, 1024);
  out.conv_bias = fields.boolean("mamba_conv_bias", true);
  out.bias = fields.boolean("mamba_proj_bias", false);
  return out;
}

}  // namespace

// --- Mamba alone -----------------------------------------------------------------------------------------------------
namespace {

const OutlineNames kBackbone{.prefix = "backbone.", .embedding = "embeddings", .norm = "norm_f"};

Expected<Architecture> pure_mamba(const JsonObject& config, std::string_view family) {
  Fields fields(config);
  DecoderConfig c;
  c.vocab = fields.integer("vocab_size", 50280, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 768, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 32, kMaxLayers);
  c.tied = fields.boolean("tie_word_embeddings", true);
  MambaShape shape;
  shape.hidden = c.hidden;
  shape.inner = fields.integer("expand", 2, 1024) * c.hidden;
  shape.state = fields.integer("state_size", 16, kMaxWidth);
  shape.kernel = fields.integer("conv_kernel", 4, 1024);
  shape.time_rank = read_time_rank(fields, "time_step_rank", c.hidden);
  shape.bias = fields.boolean("use_bias", false);
  shape.conv_bias = fields.boolean("use_conv_bias", true);
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return outline(read, family, kBackbone, same_layers(read, {.mixer = Mixer::mamba}),
                   [&](const OutlineTraits& traits) {
                     LayerKind layer = outline_layer(read, traits);
                     ParameterList p(layer.parameters, true);
                     layer.input_norm = p.rms_norm("norm", width(read.hidden));
                     add_mamba(p, layer, "mixer.", shape);
                     return layer;
                   });
  });
}

}  // namespace

Expected<Architecture> outline_mamba(const JsonObject& config) { return pure_mamba(config, "mamba"); }

Expected<Architecture> outline_falcon_mamba(const JsonObject& config) { return pure_mamba(config, "falcon_mamba"); }

Expected<Architecture> outline_mamba2(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c;
  c.vocab = fields.integer("vocab_size", 32768, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 4096, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 64, kMaxLayers);
  c.tied = fields.boolean("tie_word_embeddings", false);
  MambaShape shape;
  shape.hidden = c.hidden;
  shape.inner = fields.integer("expand", 2, 1024) * c.hidden;
  shape.state = fields.integer("state_size", 128, kMaxWidth);
  shape.kernel = fields.integer("conv_kernel", 4, 1024);
  shape.heads = fields.integer("num_heads", 128, kMaxWidth);
  shape.groups = fields.integer("n_groups", 8, kMaxWidth);
  shape.bias = fields.boolean("use_bias", false);
  shape.conv_bias = fields.boolean("use_conv_bias", true);
  check_heads(fields, "num_heads", shape);
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return outline(read, "mamba2", kBackbone, same_layers(read, {.mixer = Mixer::mamba}),
                   [&](const OutlineTraits& traits) {
                     LayerKind layer = outline_layer(read, traits);
                     ParameterList p(layer.parameters, true);
                     layer.input_norm = p.rms_norm("norm", width(read.hidden));
                     add_mamba2(p, layer, "mixer.", shape);
                     return layer;
                   });
  });
}

// --- Mamba among attention -------------------------------------------------------------------------------------------

Expected<Architecture> outline_bamba(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 128000,
                                        .hidden = 4096,
                                        .intermediate = 14336,
                                        .layers = 32,
                                        .heads = 32,
                                        .kv_heads = 8,
                                        .max_positions = 262144});
  read_attention_bias(fields, c);
  const bool mlp_bias = fields.boolean("mlp_bias", false);
  const MambaShape shape = read_mamba2(fields, c.hidden, 128, 1, 256);
  check_heads(fields, "mamba_n_heads", shape);
  const std::vector<bool> attends = read_indices(fields, "attn_layer_indices", c.layers);
  std::vector<OutlineTraits> layers = same_layers(c);
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i].mixer = attends[i] ? Mixer::attention : Mixer::mamba;
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    const auto make = [&](const OutlineTraits& traits) {
      LayerKind layer = outline_layer(read, traits);
      ParameterList p(layer.parameters, true);
      layer.mlp = add_gated(p, "feed_forward.", read.hidden, read.intermediate, mlp_bias);
      layer.input_norm = p.rms_norm("input_layernorm", width(read.hidden));
      layer.post_attention_norm = p.rms_norm("pre_ff_layernorm", width(read.hidden));
      if (traits.mixer == Mixer::mamba) add_mamba2(p, layer, "mamba.", shape);
      else add_attention(p, layer.attention, "self_attn.", projections_of(read));
      return layer;
    };
    Architecture out = outline(read, "bamba", {.norm = "final_layernorm"}, layers, make);
    // Half of a head is turned: BambaConfig's partial_rotary_factor.
    out.rotary.dim = read.head_dim / 2;
    out.rotary.max_positions = out.rotary.original_max_positions = read.max_positions;
    return out;
  });
}

Expected<Architecture> outline_falcon_h1(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 128000,
                                        .hidden = 4096,
                                        .intermediate = 14336,
                                        .layers = 32,
                                        .heads = 32,
                                        .kv_heads = 8,
                                        .max_positions = 8192});
  read_attention_bias(fields, c);
  const bool mlp_bias = fields.boolean("mlp_bias", false);
  MambaShape shape = read_mamba2(fields, c.hidden, 128, 1, 256);
  if (!fields.is_null("mamba_d_ssm")) shape.inner = fields.integer("mamba_d_ssm", 1024, kMaxWidth);
  shape.norm = fields.boolean("mamba_rms_norm", false);
  shape.out_bias = fields.boolean("projectors_bias", false);
  check_heads(fields, "mamba_n_heads", shape);
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return outline(read, "falcon_h1", {.norm = "final_layernorm"}, same_layers(read, {.mixer = Mixer::both}),
                   [&](const OutlineTraits& traits) {
                     LayerKind layer = outline_layer(read, traits);
                     ParameterList p(layer.parameters, true);
                     layer.mlp = add_gated(p, "feed_forward.", read.hidden, read.intermediate, mlp_bias);
                     add_mamba2(p, layer, "mamba.", shape);
                     add_attention(p, layer.attention, "self_attn.", projections_of(read));
                     layer.input_norm = p.rms_norm("input_layernorm", width(read.hidden));
                     layer.post_attention_norm = p.rms_norm("pre_ff_layernorm", width(read.hidden));
                     return layer;
                   });
  });
}

Expected<Architecture> outline_granitemoehybrid(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {});
  read_attention_bias(fields, c);
  const MambaShape shape = read_mamba2(fields, c.hidden, 128, 1, 256);
  check_heads(fields, "mamba_n_heads", shape);
  c.mixture.experts = fields.count("num_local_experts", 8, kMaxExperts);
  c.mixture.top_k = fields.count("num_experts_per_tok", 2, kMaxExperts);
  const std::int64_t shared = fields.integer("shared_intermediate_size", 1024, kMaxWidth);
  const std::string_view key = fields.has("layer_types") ? "layer_types" : "layers_block_type";
  std::vector<OutlineTraits> layers =
      read_mixers(fields, key, c, Mixer::mamba,
                  {{"mamba", Mixer::mamba}, {"attention", Mixer::attention}, {"full_attention", Mixer::attention}});
  for (OutlineTraits& traits : layers) traits.sparse = c.mixture.experts > 0;
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return outline(read, "granitemoehybrid", {}, layers, [&](const OutlineTraits& traits) {
      LayerKind layer = outline_layer(read, traits);
      ParameterList p(layer.parameters, true);
      const Dimension hidden = width(read.hidden);
      const Dimension ffn = ffn_width(read.intermediate);
      const Dimension both = joined({ffn_width(shared), ffn_width(shared)});
      layer.input_norm = p.rms_norm("input_layernorm", hidden);
      layer.post_attention_norm = p.rms_norm("post_attention_layernorm", hidden);
      if (traits.sparse) {
        const Dimension count = axis(Axis::expert, read.mixture.experts);
        layer.mixture.experts.count = read.mixture.experts;
        layer.mixture.top_k = read.mixture.top_k;
        layer.mixture.experts.gate_up =
            p.add("block_sparse_moe.input_linear.weight", {count, joined({ffn, ffn}), hidden});
        layer.mixture.experts.down = p.add("block_sparse_moe.output_linear.weight", {count, hidden, ffn});
        layer.mixture.router = p.linear("block_sparse_moe.router.layer", hidden, count, false);
      }
      layer.mlp.up = p.linear("shared_mlp.input_linear", hidden, both, false);
      layer.mlp.down = p.linear("shared_mlp.output_linear", ffn_width(shared), hidden, false);
      if (traits.mixer == Mixer::mamba) add_mamba2(p, layer, "mamba.", shape);
      else add_attention(p, layer.attention, "self_attn.", projections_of(read));
      return layer;
    });
  });
}

Expected<Architecture> outline_jamba(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 65536,
                                        .hidden = 4096,
                                        .intermediate = 14336,
                                        .layers = 32,
                                        .heads = 32,
                                        .kv_heads = 8,
                                        .max_positions = 262144});
  MambaShape shape;
  shape.hidden = c.hidden;
  shape.inner = fields.integer("mamba_expand", 2, 1024) * c.hidden;
  shape.state = fields.integer("mamba_d_state", 16, kMaxWidth);
  shape.kernel = fields.integer("mamba_d_conv", 4, 1024);
  shape.time_rank = read_time_rank(fields, "mamba_dt_rank", c.hidden);
  shape.bias = fields.boolean("mamba_proj_bias", false);
  shape.conv_bias = fields.boolean("mamba_conv_bias", true);
  shape.inner_norms = true;
  c.mixture = {.experts = fields.integer("num_experts", 16, kMaxExperts),
               .top_k = fields.integer("num_experts_per_tok", 2, kMaxExperts),
               .intermediate = c.intermediate};
  const std::int64_t attention_period = fields.integer("attn_layer_period", 8, kMaxLayers);
  const std::int64_t attention_offset = fields.count("attn_layer_offset", 4, kMaxLayers);
  const std::int64_t expert_period = fields.integer("expert_layer_period", 2, kMaxLayers);
  const std::int64_t expert_offset = fields.count("expert_layer_offset", 1, kMaxLayers);
  std::vector<OutlineTraits> layers = same_layers(c);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    OutlineTraits& traits = layers[static_cast<std::size_t>(i)];
    traits.mixer = i % attention_period == attention_offset ? Mixer::attention : Mixer::mamba;
    traits.sparse = c.mixture.experts > 1 && i % expert_period == expert_offset;
  }
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return outline(read, "jamba", {.norm = "final_layernorm"}, layers, [&](const OutlineTraits& traits) {
      LayerKind layer = outline_layer(read, traits);
      ParameterList p(layer.parameters, true);
      if (traits.mixer == Mixer::mamba) add_mamba(p, layer, "mamba.", shape);
      else add_attention(p, layer.attention, "self_attn.", projections_of(read));
      if (traits.sparse) {
        layer.mixture.router = add_router(p, "feed_forward.router", read);
        add_routed(p, layer, "feed_forward.experts.", read.hidden, read.mixture);
      } else {
        layer.mlp = add_gated(p, "feed_forward.", read.hidden, read.intermediate);
      }
      layer.input_norm = p.rms_norm("input_layernorm", width(read.hidden));
      layer.post_attention_norm = p.rms_norm("pre_ff_layernorm", width(read.hidden));
      return layer;
    });
  });
}

// --- Nemotron-H: a layer is a mixer or a feed-forward, each behind a norm of its own
// ----------------------------------
namespace {

struct Nemotron {
  DecoderConfig c;
  MambaShape mamba;
  std::int64_t latent = 0;  // width of the experts' input and output; 0: hidden
  bool mlp_bias = false;
};

// hybrid_override_pattern has a letter for each layer.
std::vector<OutlineTraits> read_pattern(Fields& fields, DecoderConfig& c) {
  constexpr std::string_view kKey = "hybrid_override_pattern";
  std::vector<OutlineTraits> out;
  const auto of = [&](std::string_view key, std::string_view name) {
    if (name == "M" || name == "mamba") out.push_back({.mixer = Mixer::mamba});
    else if (name == "*" || name == "attention") out.push_back({.mixer = Mixer::attention});
    else if (name == "-" || name == "mlp") out.push_back({.mixer = Mixer::none});
    else if (name == "E" || name == "moe") out.push_back({.mixer = Mixer::none, .sparse = true});
    else fields.reject(key, fmt::format("'{}' is not modelled; known are M, *, - and E", excerpt(name)));
  };
  if (fields.has(kKey)) {
    const std::string pattern = fields.config().string(kKey, "").value_or("");
    if (pattern.empty() || pattern.size() > static_cast<std::size_t>(kMaxLayers))
      fields.reject(kKey, "is no text with a letter for each layer");
    for (std::size_t i = 0; i < pattern.size() && !fields.error(); ++i)
      of(kKey, std::string_view(pattern).substr(i, 1));
  } else {
    std::vector<std::string> names = read_layer_names(fields, "layers_block_type", 0);
    if (names.empty()) names = {"mamba", "moe", "attention", "mlp"};
    for (const std::string& name : names) of("layers_block_type", name);
  }
  c.layers = static_cast<std::int64_t>(out.size());
  return out;
}

Nemotron read_nemotron(Fields& fields) {
  Nemotron out;
  DecoderConfig& c = out.c;
  c = read_sizes(fields, {.vocab = 131072,
                          .hidden = 4096,
                          .intermediate = 21504,
                          .layers = 52,
                          .heads = 32,
                          .kv_heads = 8,
                          .head_dim = 128,
                          .max_positions = 4096});
  if (!fields.has("head_dim")) c.head_dim = fields.optional_integer("attention_head_dim", c.head_dim, kMaxWidth);
  c.tied = false;  // and no biases of attention, whatever the file says
  MambaShape& shape = out.mamba;
  shape.hidden = c.hidden;
  shape.heads = fields.integer("mamba_num_heads", 128, kMaxWidth);
  shape.inner = shape.heads * fields.integer("mamba_head_dim", 64, 1 << 16);
  shape.groups = fields.integer("n_groups", 8, kMaxWidth);
  shape.state = fields.integer("ssm_state_size", 128, kMaxWidth);
  shape.kernel = fields.integer("conv_kernel", 4, 1024);
  shape.conv_bias = fields.boolean("use_conv_bias", true);
  shape.bias = fields.boolean("use_bias", false);
  c.mixture = {.experts = fields.integer("n_routed_experts", 8, kMaxExperts),
               .top_k = fields.integer("num_experts_per_tok", 2, kMaxExperts),
               .intermediate = fields.integer("moe_intermediate_size", 7688, kMaxWidth),
               .shared_intermediate = fields.integer("moe_shared_expert_intermediate_size", 7688, kMaxWidth)};
  out.latent = fields.is_null("moe_latent_size") ? 0 : fields.count("moe_latent_size", 0, kMaxWidth);
  out.mlp_bias = fields.boolean("mlp_bias", false);
  return out;
}

void add_nemotron_experts(ParameterList& p, LayerKind& layer, const Nemotron& from) {
  const DecoderConfig& c = from.c;
  const std::int64_t seen = from.latent == 0 ? c.hidden : from.latent;
  add_routed(p, layer, "mixer.experts.", seen, c.mixture, false);
  layer.mixture.router = add_router(p, "mixer.gate", c);
  layer.mixture.shared = add_plain(p, "mixer.shared_experts.", c.hidden, c.mixture.shared_intermediate, from.mlp_bias,
                                   "up_proj", "down_proj");
  add_stored_buffer(layer, "mixer.gate.e_score_correction_bias", {c.mixture.experts});
  if (from.latent == 0) return;
  p.linear("mixer.fc1_latent_proj", width(c.hidden), narrow(from.latent), from.mlp_bias);
  p.linear("mixer.fc2_latent_proj", narrow(from.latent), width(c.hidden), from.mlp_bias);
}

}  // namespace

Expected<Architecture> outline_nemotron_h(const JsonObject& config) {
  Fields fields(config);
  Nemotron from = read_nemotron(fields);
  const std::vector<OutlineTraits> layers = read_pattern(fields, from.c);
  const bool in_fp32 = fields.config().string("mamba_ssm_cache_dtype", "float32").value_or("") == "float32";
  return finish(fields, std::move(from)).map([&](const Nemotron& read) {
    return outline(
        read.c, "nemotron_h", {.embedding = "embeddings", .norm = "norm_f"}, layers, [&](const OutlineTraits& traits) {
          LayerKind layer = outline_layer(read.c, traits);
          ParameterList p(layer.parameters, true);
          layer.input_norm = p.rms_norm("norm", width(read.c.hidden));
          if (traits.sparse) {
            add_nemotron_experts(p, layer, read);
          } else if (traits.mixer == Mixer::mamba) {
            add_mamba2(p, layer, "mixer.", read.mamba);
            layer.recurrent->matrix_in_fp32 = in_fp32;
          } else if (traits.mixer == Mixer::attention) {
            add_attention(p, layer.attention, "mixer.", projections_of(read.c));
          } else {
            layer.mlp =
                add_plain(p, "mixer.", read.c.hidden, read.c.intermediate, read.mlp_bias, "up_proj", "down_proj");
          }
          return layer;
        });
  });
}

// --- LFM 2: short convolutions ---------------------------------------------------------------------------------------
namespace {

std::int64_t feed_forward_width(Fields& fields, std::int64_t given) {
  std::int64_t out = fields.optional_integer("block_ff_dim", given, kMaxWidth);
  if (!fields.boolean("block_auto_adjust_ff_dim", true)) return out;
  out = 2 * out / 3;
  const double factor = fields.is_null("block_ffn_dim_multiplier") ? 0 : fields.number("block_ffn_dim_multiplier", 1);
  if (factor <= 0 || factor > 1024) return out;
  const std::int64_t multiple = fields.integer("block_multiple_of", 256, kMaxWidth);
  out = static_cast<std::int64_t>(factor * static_cast<double>(out));
  return (out + multiple - 1) / multiple * multiple;
}

void add_short_convolution(ParameterList& p, LayerKind& layer, std::int64_t hidden, std::int64_t kernel, bool bias) {
  const Dimension inner = axis(Axis::channels, hidden);
  p.add("conv.conv.weight", {inner, axis(Axis::kernel, 1), axis(Axis::kernel, kernel)});
  if (bias) p.add("conv.conv.bias", {inner});
  p.linear("conv.in_proj", width(hidden), joined({inner, inner, inner}), bias);
  p.linear("conv.out_proj", inner, width(hidden), bias);
  layer.recurrent = Recurrent{.kind = RecurrentKind::short_convolution, .conv_channels = hidden, .conv_kernel = kernel};
}

}  // namespace

Expected<Architecture> outline_lfm2(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 65536,
                                        .hidden = 2560,
                                        .intermediate = 12288,
                                        .layers = 32,
                                        .heads = 32,
                                        .kv_heads = 8,
                                        .max_positions = 128000,
                                        .tied = true});
  if (fields.has("tie_embedding")) c.tied = fields.boolean("tie_embedding", true);
  c.intermediate = feed_forward_width(fields, c.intermediate);
  c.qk_norm = true;
  const std::int64_t kernel = fields.integer("conv_L_cache", 3, 1024);
  const bool bias = fields.boolean("conv_bias", false);
  std::vector<OutlineTraits> layers = read_mixers(fields, "layer_types", c, Mixer::attention,
                                                  {{"conv", Mixer::convolution}, {"full_attention", Mixer::attention}});
  if (!fields.has("layer_types") && fields.has("full_attn_idxs")) {
    const std::vector<bool> attends = read_indices(fields, "full_attn_idxs", c.layers);
    for (std::size_t i = 0; i < layers.size(); ++i)
      layers[i].mixer = attends[i] ? Mixer::attention : Mixer::convolution;
  }
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return outline(read, "lfm2", {.norm = "embedding_norm"}, layers, [&](const OutlineTraits& traits) {
      LayerKind layer = outline_layer(read, traits);
      ParameterList p(layer.parameters, true);
      if (traits.mixer == Mixer::convolution) {
        add_short_convolution(p, layer, read.hidden, kernel, bias);
      } else {
        add_attention(p, layer.attention, "self_attn.", projections_of(read),
                      {"q_proj", "k_proj", "v_proj", "out_proj", "q_layernorm", "k_layernorm"});
      }
      layer.mlp = add_gated(p, "feed_forward.", read.hidden, read.intermediate, false, {"w1", "w3", "w2"});
      layer.input_norm = p.rms_norm("operator_norm", width(read.hidden));
      layer.post_attention_norm = p.rms_norm("ffn_norm", width(read.hidden));
      return layer;
    });
  });
}

}  // namespace ullage::model
