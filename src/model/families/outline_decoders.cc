// Sources: transformers' models/{bitnet,dbrx}; the code published beside the weights of InternLM 1 and 3, MiMo and MiMo
// V2, MiniCPM, Nemotron Super, Orion and openPangu. transformers 5.12 gives the router of dbrx the experts' inner
// width; the published checkpoint has the layer's.
#include "model/families/outline_decoders.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "model/families/moe.h"
#include "model/families/outline_parts.h"

namespace ullage::model {
namespace {

// What decoders in the manner of Llama differ in here.
struct Variant {
  NormKind norm = NormKind::rms;
  std::int64_t predicted = 0;  // layers that predict tokens further ahead (MiMo)
  bool stores_rotary = false;  // checkpoints hold each layer's frequencies
  bool inner_norms = false;    // of what attention gives and of the feed-forward part's width (BitNet)
};

LayerKind llama_like(const DecoderConfig& c, const OutlineTraits& traits, const Variant& variant) {
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_attention(p, layer.attention, "self_attn.", projections_of(c));
  if (variant.inner_norms) p.rms_norm("self_attn.attn_sub_norm", width(c.hidden));
  add_gated_mlp(p, layer, c);
  if (variant.inner_norms) p.rms_norm("mlp.ffn_sub_norm", ffn_width(c.intermediate));
  add_norms(p, layer, c, variant.norm);
  if (variant.stores_rotary) add_stored_buffer(layer, "self_attn.rotary_emb.inv_freq", {c.head_dim / 2});
  return layer;
}

// A layer as the others behind a projection of the last hidden state beside the next token's embedding.
void add_predicting_layers(Architecture& arch, const DecoderConfig& c, std::int64_t count) {
  ParameterList p = outside(arch);
  write_layers(p, "model.mtp_layers", count, [&](ParameterList& list, const std::string& at) {
    Attention unused;
    add_attention(list, unused, at + "self_attn.", projections_of(c));
    add_gated(list, at + "mlp.", c.hidden, c.intermediate, c.mlp_bias);
    for (const char* norm :
         {"input_layernorm", "post_attention_layernorm", "token_layernorm", "hidden_layernorm", "final_layernorm"}) {
      list.rms_norm(at + norm, width(c.hidden));
    }
    list.linear(at + "input_proj", width(2 * c.hidden), width(c.hidden), false);
  });
}

Expected<Architecture> like_llama(const Fields& fields, DecoderConfig c, std::string_view family,
                                  const Variant& variant = {}) {
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    Architecture arch = outline(read, family, {.norm_kind = variant.norm}, same_layers(read),
                                [&](const OutlineTraits& traits) { return llama_like(read, traits, variant); });
    if (variant.predicted > 0) add_predicting_layers(arch, read, variant.predicted);
    return arch;
  });
}

}  // namespace

// The weights as they are trained: what stores them in less than two bits is a format of its own.
Expected<Architecture> outline_bitnet(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 128256,
                                        .hidden = 2560,
                                        .intermediate = 6912,
                                        .layers = 30,
                                        .heads = 20,
                                        .kv_heads = 5,
                                        .max_positions = 2048});
  read_attention_bias(fields, c);
  return like_llama(fields, std::move(c), "bitnet", {.inner_norms = true});
}

Expected<Architecture> outline_internlm(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 103168});
  c.qkv_bias = c.output_bias = fields.boolean("bias", true);
  return like_llama(fields, std::move(c), "internlm");
}

Expected<Architecture> outline_internlm3(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 128512, .intermediate = 11008, .kv_heads = 0, .max_positions = 32768});
  c.qkv_bias = fields.boolean("qkv_bias", false);
  c.output_bias = c.mlp_bias = fields.boolean("bias", false);
  return like_llama(fields, std::move(c), "internlm3");
}

Expected<Architecture> outline_orion(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(
      fields,
      {.vocab = 84608, .hidden = 4096, .intermediate = 15360, .layers = 40, .heads = 40, .max_positions = 4096});
  read_attention_bias(fields, c);
  return like_llama(fields, std::move(c), "orion", {.norm = NormKind::layer});
}

Expected<Architecture> outline_pangu_embedded(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c =
      read_sizes(fields, {.vocab = 153376, .intermediate = 12800, .layers = 34, .kv_heads = 8, .max_positions = 32768});
  c.qkv_bias = c.output_bias = fields.boolean("bias", true);
  return like_llama(fields, std::move(c), "PanguEmbedded", {.stores_rotary = true});
}

Expected<Architecture> outline_mimo(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(
      fields, {.vocab = 151936, .hidden = 4096, .intermediate = 22016, .kv_heads = 32, .max_positions = 32768});
  c.qkv_bias = fields.boolean("attention_bias", true);
  const std::int64_t predicted = fields.count("num_nextn_predict_layers", 1, kMaxLayers);
  return like_llama(fields, std::move(c), "mimo", {.predicted = predicted});
}

// --- MiniCPM: experts in some ----------------------------------------------------------------------------------------

Expected<Architecture> outline_minicpm(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.tied = true});
  read_attention_bias(fields, c);
  c.mixture.experts = fields.count("num_experts", 0, kMaxExperts);
  c.mixture.top_k = fields.count("num_experts_per_tok", 2, kMaxExperts);
  c.mixture.intermediate = c.intermediate;
  const bool sparse = c.mixture.experts > 0;
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return outline(read, "minicpm", {}, same_layers(read, {.sparse = sparse}), [&](const OutlineTraits& traits) {
      if (!traits.sparse) return llama_like(read, traits, {});
      LayerKind layer = outline_layer(read, traits);
      ParameterList p(layer.parameters, true);
      add_attention(p, layer.attention, "self_attn.", projections_of(read));
      layer.mixture.router = add_router(p, "mlp.gate", read);
      add_routed(p, layer, "mlp.experts.", read.hidden, read.mixture);
      add_norms(p, layer, read, NormKind::rms);
      return layer;
    });
  });
}

// --- Nemotron by architecture search: each layer has its own heads and width, or lacks a part ------------------------
namespace {

struct Searched {
  std::int64_t kv_heads = 0;      // 0: no attention
  std::int64_t ffn = 0;           // 0: no feed-forward
  bool linear_attention = false;  // one product in its place
  bool linear_ffn = false;
  friend bool operator==(const Searched&, const Searched&) = default;
};

// A multiple of the hidden width, two thirds of it for the gate's sake, up to a multiple of 256.
std::int64_t searched_width(double multiple, std::int64_t hidden) {
  const auto size = static_cast<std::int64_t>(2 * multiple * static_cast<double>(hidden) / 3);
  return (size + 255) / 256 * 256;
}

Searched read_block(Fields& fields, const JsonObject& block, const DecoderConfig& c) {
  Searched out;
  const auto take = [&](const auto& value, auto fallback) {
    if (!value) fields.reject(value.error());
    return value.value_or(fallback);
  };
  const auto attention = block.object("attention");
  const auto ffn = block.object("ffn");
  if (!attention || !ffn) {
    fields.reject(attention ? ffn.error() : attention.error());
    return out;
  }
  out.linear_attention = take(attention->boolean("replace_with_linear", false), false);
  out.linear_ffn = take(ffn->boolean("replace_with_linear", false), false);
  if (!out.linear_attention && !take(attention->boolean("no_op", false), false)) {
    const std::int64_t group = take(attention->integer("n_heads_in_group", 1, 1, c.heads), std::int64_t{1});
    out.kv_heads = c.heads / group;
  }
  if (out.linear_ffn || take(ffn->boolean("no_op", false), false)) return out;
  const double multiple = take(ffn->number("ffn_mult", 1), 1.0);
  if (!(multiple > 0) || multiple > 1024) fields.reject("block_configs", "has an ffn_mult that is no width");
  else out.ffn = searched_width(multiple, c.hidden);
  return out;
}

std::vector<Searched> read_blocks(Fields& fields, const DecoderConfig& c) {
  constexpr std::string_view kKey = "block_configs";
  std::vector<Searched> out;
  const Json* blocks = fields.config().find(kKey);
  if (blocks == nullptr || !blocks->is_array() || static_cast<std::int64_t>(blocks->size()) != c.layers) {
    fields.reject(kKey, "is no list with an entry for each layer");
    return out;
  }
  for (std::size_t i = 0; i < blocks->size() && !fields.error(); ++i) {
    out.push_back(
        read_block(fields, JsonObject((*blocks)[i], fmt::format("{}[{}]", fields.config().where(kKey), i)), c));
  }
  return out;
}

LayerKind searched_layer(const DecoderConfig& c, const OutlineTraits& traits, const Searched& from) {
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  if (from.kv_heads > 0) {
    Projections projections = projections_of(c);
    projections.kv_heads = from.kv_heads;
    add_attention(p, layer.attention, "self_attn.", projections);
  } else if (from.linear_attention) {
    p.linear("self_attn.linear_attn", width(c.hidden), width(c.hidden), false);
  }
  if (from.kv_heads > 0 || from.linear_attention) layer.input_norm = p.rms_norm("input_layernorm", width(c.hidden));
  if (from.ffn > 0) layer.mlp = add_gated(p, "mlp.", c.hidden, from.ffn);
  else if (from.linear_ffn) p.linear("mlp.linear_mlp", width(c.hidden), width(c.hidden), false);
  if (from.ffn > 0 || from.linear_ffn)
    layer.post_attention_norm = p.rms_norm("post_attention_layernorm", width(c.hidden));
  return layer;
}

}  // namespace

Expected<Architecture> outline_nemotron_nas(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c;
  c.vocab = fields.integer("vocab_size", 128256, kMaxVocab);
  c.hidden = fields.integer("hidden_size", 8192, kMaxWidth);
  c.layers = fields.integer("num_hidden_layers", 80, kMaxLayers);
  c.heads = fields.integer("num_attention_heads", 64, kMaxWidth);
  c.head_dim = std::max<std::int64_t>(1, c.hidden / c.heads);
  c.max_positions = fields.integer("max_position_embeddings", 131072, kMaxPositions);
  c.tied = fields.boolean("tie_word_embeddings", false);
  read_attention_bias(fields, c);
  const std::vector<Searched> blocks = read_blocks(fields, c);
  constexpr std::size_t kMostKinds = 256;  // of layers, that an architecture tells apart
  std::vector<OutlineTraits> layers;
  std::vector<Searched> kinds;
  for (const Searched& block : blocks) {
    if (std::find(kinds.begin(), kinds.end(), block) == kinds.end()) kinds.push_back(block);
    const auto at = std::find(blocks.begin(), blocks.end(), block);
    layers.push_back({.mixer = block.kv_heads > 0 ? Mixer::attention : Mixer::none,
                      .variant = static_cast<std::int32_t>(at - blocks.begin())});
  }
  if (kinds.size() > kMostKinds)
    fields.reject("block_configs",
                  fmt::format("has {} kinds of layers; at most {} are told apart", kinds.size(), kMostKinds));
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return outline(read, "nemotron-nas", {}, layers, [&](const OutlineTraits& traits) {
      return searched_layer(read, traits, blocks[static_cast<std::size_t>(traits.variant)]);
    });
  });
}

// --- MiMo V2: heads of their own for layers with a window, sinks beside their scores
// ----------------------------------
namespace {

struct MiMo {
  DecoderConfig c;
  Projections full, sliding;
  bool full_sinks = false, sliding_sinks = false;
  std::vector<OutlineTraits> layers;
};

std::vector<bool> read_flags(Fields& fields, std::string_view key, std::int64_t layers) {
  std::vector<bool> out(static_cast<std::size_t>(layers), false);
  const Json* list = fields.config().find(key);
  if (list == nullptr) return out;
  if (!list->is_array() || list->size() != out.size()) {
    fields.reject(key, "is no list with an entry for each layer");
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = (*list)[i] == 1;
  return out;
}

MiMo read_mimo_v2(Fields& fields) {
  MiMo out;
  DecoderConfig& c = out.c;
  c = read_sizes(fields,
                 {.vocab = 151936, .hidden = 4096, .intermediate = 22016, .kv_heads = 32, .max_positions = 32768});
  read_attention_bias(fields, c);
  out.full = projections_of(c);
  out.full.value_dim = fields.optional_integer("v_head_dim", c.head_dim, kMaxWidth);
  out.sliding = out.full;
  out.sliding.heads = fields.optional_integer("swa_num_attention_heads", c.heads, kMaxWidth);
  out.sliding.kv_heads = fields.optional_integer("swa_num_key_value_heads", c.kv_heads, kMaxWidth);
  out.sliding.head_dim = fields.optional_integer("swa_head_dim", c.head_dim, kMaxWidth);
  out.sliding.value_dim = fields.optional_integer("swa_v_head_dim", out.sliding.head_dim, kMaxWidth);
  out.full_sinks = fields.boolean("add_full_attention_sink_bias", false);
  out.sliding_sinks = fields.boolean("add_swa_attention_sink_bias", false);
  c.window = fields.optional_integer("sliding_window", 128, kMaxPositions);
  c.mixture = {.experts = fields.integer("n_routed_experts", 256, kMaxExperts),
               .top_k = fields.integer("num_experts_per_tok", 8, kMaxExperts),
               .intermediate = fields.integer("moe_intermediate_size", 2048, kMaxWidth)};
  const std::vector<bool> slides = read_flags(fields, "hybrid_layer_pattern", c.layers);
  const std::vector<bool> sparse = read_flags(fields, "moe_layer_freq", c.layers);
  for (std::size_t i = 0; i < slides.size(); ++i) out.layers.push_back({.slides = slides[i], .sparse = sparse[i]});
  return out;
}

LayerKind mimo_v2_layer(const MiMo& from, const OutlineTraits& traits) {
  const DecoderConfig& c = from.c;
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  const Projections& projections = traits.slides ? from.sliding : from.full;
  add_attention(p, layer.attention, "self_attn.", projections);
  if (traits.slides ? from.sliding_sinks : from.full_sinks)
    layer.attention.sinks = p.add("self_attn.attention_sink_bias", {head_width(projections.heads, 1)});
  if (traits.sparse) {
    layer.mixture.router = add_router(p, "mlp.gate", c);
    add_routed(p, layer, "mlp.experts.", c.hidden, c.mixture);
    add_stored_buffer(layer, "mlp.gate.e_score_correction_bias", {c.mixture.experts});
  } else {
    add_gated_mlp(p, layer, c);
  }
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

}  // namespace

Expected<Architecture> outline_mimo_v2_flash(const JsonObject& config) {
  Fields fields(config);
  return finish(fields, read_mimo_v2(fields)).map([](const MiMo& read) {
    return outline(read.c, "mimo_v2_flash", {}, read.layers,
                   [&](const OutlineTraits& traits) { return mimo_v2_layer(read, traits); });
  });
}

// --- Step 3.7 --------------------------------------------------------------------------------------------------------

Expected<Architecture> outline_step3p7(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 128896,
                                        .hidden = 4096,
                                        .intermediate = 11264,
                                        .layers = 45,
                                        .heads = 64,
                                        .kv_heads = 8,
                                        .head_dim = 128,
                                        .max_positions = 65536});
  c.qk_norm = true;
  c.window = fields.optional_integer("sliding_window", 512, kMaxPositions);
  c.mixture = {.experts = fields.integer("num_experts", 288, kMaxExperts),
               .top_k = fields.integer("num_experts_per_tok", 8, kMaxExperts),
               .intermediate = fields.integer("moe_intermediate_size", 1280, kMaxWidth),
               .shared_intermediate = fields.integer("share_expert_dim", 1280, kMaxWidth)};
  const std::int64_t dense = fields.count("first_k_dense_replace", 3, kMaxLayers);
  const std::vector<bool> slides = fields.sliding_layers("layer_types", c.layers);
  std::vector<OutlineTraits> layers = same_layers(c);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].slides = !slides.empty() && slides[i];
    layers[i].sparse = static_cast<std::int64_t>(i) >= dense;
  }
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return outline(read, "step3p7", {}, layers, [&](const OutlineTraits& traits) {
      if (!traits.sparse) return llama_like(read, traits, {});
      LayerKind layer = outline_layer(read, traits);
      ParameterList p(layer.parameters, true);
      add_attention(p, layer.attention, "self_attn.", projections_of(read));
      layer.mixture.router = add_router(p, "moe.gate", read);
      add_stored_buffer(layer, "moe.router_bias", {read.mixture.experts});
      add_routed(p, layer, "moe.", read.hidden, read.mixture);
      layer.mixture.shared = add_gated(p, "share_expert.", read.hidden, read.mixture.shared_intermediate);
      add_norms(p, layer, read, NormKind::rms);
      return layer;
    });
  });
}

// --- DBRX: the experts' weights flat, one behind the other
// ------------------------------------------------------------
namespace {

LayerKind dbrx_layer(const DecoderConfig& c, const OutlineTraits& traits) {
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  const Dimension hidden = width(c.hidden);
  const Dimension q = head_width(c.heads, c.head_dim);
  const Dimension kv = kv_width(c.kv_heads, c.head_dim);
  const Dimension experts = axis(Axis::expert, c.mixture.experts, c.mixture.intermediate);
  const std::string at = "norm_attn_norm.";
  layer.input_norm = {NormKind::layer, p.add(at + "norm_1.weight", {hidden}), {}};
  layer.attention.qkv = p.linear(at + "attn.Wqkv", hidden, joined({q, kv, kv}), false);
  layer.attention.o = p.linear(at + "attn.out_proj", q, hidden, false);
  layer.post_attention_norm = {NormKind::layer, p.add(at + "norm_2.weight", {hidden}), {}};
  layer.mixture.router = add_router(p, "ffn.router.layer", c);
  layer.mixture.experts.count = c.mixture.experts;
  layer.mixture.top_k = c.mixture.top_k;
  layer.mixture.experts.gate_up = p.add("ffn.experts.mlp.w1", {experts, hidden});
  layer.mixture.experts.gate_up_bias = p.add("ffn.experts.mlp.v1", {experts, hidden});
  layer.mixture.experts.down = p.add("ffn.experts.mlp.w2", {experts, hidden});
  return layer;
}

}  // namespace

Expected<Architecture> outline_dbrx(const JsonObject& config) {
  const Json none = Json::object();
  const auto nested = [&](std::string_view key) {
    const Json* value = config.find(key);
    return JsonObject(value != nullptr && value->is_object() ? *value : none, config.where(key));
  };
  const JsonObject attention_config = nested("attn_config");
  const JsonObject ffn_config = nested("ffn_config");
  Fields fields(config);
  Fields attention(attention_config);
  Fields ffn(ffn_config);
  DecoderConfig c;
  c.vocab = fields.integer("vocab_size", 32000, kMaxVocab);
  c.hidden = fields.integer("d_model", 2048, kMaxWidth);
  c.layers = fields.integer("n_layers", 24, kMaxLayers);
  c.heads = fields.integer("n_heads", 16, kMaxWidth);
  c.head_dim = std::max<std::int64_t>(1, c.hidden / c.heads);
  c.max_positions = fields.integer("max_seq_len", 2048, kMaxPositions);
  c.tied = fields.boolean("tie_word_embeddings", false);
  c.kv_heads = attention.integer("kv_n_heads", 1, kMaxWidth);
  c.mixture = {.experts = ffn.integer("moe_num_experts", 4, kMaxExperts),
               .top_k = ffn.integer("moe_top_k", 1, kMaxExperts),
               .intermediate = ffn.integer("ffn_hidden_size", 3584, kMaxWidth)};
  for (const Fields* part : {&attention, &ffn}) {
    if (part->error()) fields.reject(*part->error());
  }
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    Architecture arch = outline(
        read, "dbrx", {.prefix = "transformer.", .embedding = "wte", .layers = "blocks.", .norm = ""},
        same_layers(read, {.sparse = true}), [&](const OutlineTraits& traits) { return dbrx_layer(read, traits); });
    ParameterList p = outside(arch);
    arch.final_norm = {NormKind::layer, p.add("transformer.norm_f.weight", {width(read.hidden)}), {}};
    arch.has_final_norm = true;
    return arch;
  });
}

}  // namespace ullage::model
