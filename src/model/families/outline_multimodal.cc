// Sources: transformers' models/{llama4,mllama,minimax_m3_vl,gemma3n,gemma4}.
#include <fmt/core.h>

#include <algorithm>

#include "model/families/moe.h"
#include "model/families/outline_parts.h"
#include "model/families/outline_vision.h"
#include "model/families/vision_language.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kMostOfSide = 1 << 12;  // patches and channels of anything real

std::int64_t tokens_of(std::int64_t image, std::int64_t patch) {
  const std::int64_t side = std::max<std::int64_t>(1, image / patch);
  return side * side;
}

Expected<Architecture> failed(std::initializer_list<const Fields*> all, Expected<Architecture> built) {
  for (const Fields* fields : all) {
    if (fields->error()) return tl::unexpected<Error>(*fields->error());
  }
  return built;
}

// --- Llama 4 ---------------------------------------------------------------------------------------------------------

struct Llama4 {
  DecoderConfig c;
  std::int64_t chunk = 0;
  std::int64_t dense = 0;  // width of feed-forwards without experts
  std::vector<OutlineTraits> layers;
};

Llama4 read_llama4(Fields& fields) {
  Llama4 out;
  DecoderConfig& c = out.c;
  c = read_sizes(fields, {.vocab = 202048,
                          .hidden = 5120,
                          .intermediate = 8192,
                          .layers = 48,
                          .heads = 40,
                          .kv_heads = 8,
                          .head_dim = 128,
                          .max_positions = 131072});
  read_attention_bias(fields, c);
  out.dense = fields.integer("intermediate_size_mlp", 16384, kMaxWidth);
  out.chunk = fields.optional_integer("attention_chunk_size", 8192, kMaxPositions);
  c.mixture = {.experts = fields.integer("num_local_experts", 16, kMaxExperts),
               .top_k = fields.integer("num_experts_per_tok", 1, kMaxExperts),
               .intermediate = c.intermediate};
  const std::int64_t step = fields.integer("interleave_moe_layer_step", 1, kMaxLayers);
  const std::int64_t full = fields.optional_integer("no_rope_layer_interval", 4, kMaxLayers);
  out.layers = same_layers(c);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    OutlineTraits& traits = out.layers[static_cast<std::size_t>(i)];
    traits.sparse = (i + 1) % step == 0;
    traits.slides = (i + 1) % full != 0;  // within chunks
  }
  return out;
}

LayerKind llama4_layer(const Llama4& from, const OutlineTraits& traits) {
  const DecoderConfig& c = from.c;
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_attention(p, layer.attention, "self_attn.", projections_of(c));
  if (traits.slides) layer.attention.chunk = from.chunk;
  const std::string at = "feed_forward.";
  if (traits.sparse) {
    const Dimension count = axis(Axis::expert, c.mixture.experts);
    const Dimension ffn = ffn_width(c.mixture.intermediate);
    Experts& experts = layer.mixture.experts;
    experts.count = c.mixture.experts;
    experts.stored_in_out = true;
    layer.mixture.top_k = c.mixture.top_k;
    experts.gate_up = p.add(at + "experts.gate_up_proj", {count, width(c.hidden), joined({ffn, ffn})});
    experts.down = p.add(at + "experts.down_proj", {count, ffn, width(c.hidden)});
    layer.mixture.router = add_router(p, at + "router", c);
    layer.mixture.shared = add_gated(p, at + "shared_expert.", c.hidden, c.mixture.intermediate);
  } else {
    layer.mlp = add_gated(p, at, c.hidden, from.dense);
  }
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

Expected<Architecture> llama4_text(const JsonObject& config, const OutlineNames& names) {
  Fields fields(config);
  return finish(fields, read_llama4(fields)).map([&](const Llama4& read) {
    return outline(read.c, "llama4", names, read.layers,
                   [&](const OutlineTraits& traits) { return llama4_layer(read, traits); });
  });
}

void add_llama4_tower(Architecture& arch, Fields& f) {
  const std::int64_t hidden = f.integer("hidden_size", 768, kMaxWidth);
  const std::int64_t ffn = f.integer("intermediate_size", 5632, kMaxWidth);
  const std::int64_t layers = f.integer("num_hidden_layers", 34, kMaxLayers);
  const std::int64_t heads = f.integer("num_attention_heads", 16, kMaxWidth);
  const std::int64_t channels = f.integer("num_channels", 3, kMostOfSide);
  const std::int64_t patch = f.integer("patch_size", 14, kMostOfSide);
  const std::int64_t tokens = tokens_of(f.integer("image_size", 448, 1 << 16), patch) + 1;
  const std::int64_t in = f.integer("projector_input_dim", 4096, kMaxWidth);
  const std::int64_t out = f.integer("projector_output_dim", 4096, kMaxWidth);
  const std::int64_t given = f.integer("vision_output_dim", 7680, kMaxWidth);
  if (f.error()) return;
  ParameterList p = outside(arch);
  const std::string at = "vision_model.";
  p.add(at + "class_embedding", {width(hidden)});
  p.add(at + "positional_embedding_vlm", {axis(Axis::position, tokens), width(hidden)});
  p.linear(at + "patch_embedding.linear", axis(Axis::channels, channels * patch * patch), width(hidden), false);
  p.layer_norm(at + "layernorm_pre", width(hidden));
  p.layer_norm(at + "layernorm_post", width(hidden));
  const BlockNames names{
      .norm1 = "input_layernorm", .norm2 = "post_attention_layernorm", .projections = {"q_proj", "k_proj", "v_proj"}};
  write_layers(p, at + "model.layers", layers, [&](ParameterList& list, const std::string& layer) {
    add_block(list, layer, {.hidden = hidden, .ffn = ffn, .heads = heads}, names);
  });
  p.linear(at + "vision_adapter.mlp.fc1", ffn_width(ffn), width(in), false);
  p.linear(at + "vision_adapter.mlp.fc2", width(out), width(out), false);
  p.linear("multi_modal_projector.linear_1", width(given), width(arch.hidden), false);
}

// --- Llama 3.2 Vision ------------------------------------------------------------------------------------------------

LayerKind mllama_layer(const DecoderConfig& c, const OutlineTraits& traits) {
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  Projections projections = projections_of(c);
  if (traits.mixer == Mixer::cross_attention) {
    projections.norms = true;
    p.add("cross_attn_attn_gate", {width(1)});
    p.add("cross_attn_mlp_gate", {width(1)});
    add_attention(p, layer.cross_attention, "cross_attn.", projections);
  } else {
    add_attention(p, layer.attention, "self_attn.", projections);
  }
  add_gated_mlp(p, layer, c);
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

Expected<Architecture> mllama_text(const JsonObject& config, bool tied) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 128256,
                                        .hidden = 4096,
                                        .intermediate = 14336,
                                        .layers = 40,
                                        .heads = 32,
                                        .kv_heads = 8,
                                        .max_positions = 131072});
  c.tied = tied;
  std::vector<OutlineTraits> layers = same_layers(c);
  const Json* crossing = fields.config().find("cross_attention_layers");
  std::vector<std::int64_t> numbers{3, 8, 13, 18, 23, 28, 33, 38};
  if (crossing != nullptr && crossing->is_array()) {
    numbers.clear();
    for (const Json& entry : *crossing)
      numbers.push_back(entry.is_number_integer() ? entry.get<std::int64_t>() : std::int64_t{-1});
  } else if (crossing != nullptr) {
    fields.reject("cross_attention_layers", "is no list of layers");
  }
  for (const std::int64_t number : numbers) {
    if (number < 0 || number >= c.layers)
      fields.reject("cross_attention_layers", fmt::format("{} is no layer of {}", number, c.layers));
    else layers[static_cast<std::size_t>(number)].mixer = Mixer::cross_attention;
  }
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    Architecture arch = outline(read, "mllama", {.prefix = "model.language_model."}, layers,
                                [&](const OutlineTraits& traits) { return mllama_layer(read, traits); });
    // The embedding has eight rows more than the head.
    arch.parameters[static_cast<std::size_t>(arch.embedding.weight.index)].dims[0] = axis(Axis::vocab, read.vocab + 8);
    return arch;
  });
}

void add_mllama_tower(Architecture& arch, Fields& f) {
  const std::int64_t hidden = f.integer("hidden_size", 1280, kMaxWidth);
  const std::int64_t ffn = f.integer("intermediate_size", 5120, kMaxWidth);
  const std::int64_t layers = f.integer("num_hidden_layers", 32, kMaxLayers);
  const std::int64_t global = f.integer("num_global_layers", 8, kMaxLayers);
  const std::int64_t heads = f.integer("attention_heads", 16, kMaxWidth);
  const std::int64_t channels = f.integer("num_channels", 3, kMostOfSide);
  const std::int64_t patch = f.integer("patch_size", 14, kMostOfSide);
  const std::int64_t tokens = tokens_of(f.integer("image_size", 448, 1 << 16), patch) + 1;
  const std::int64_t tiles = f.integer("max_num_tiles", 4, 1 << 10);
  const std::int64_t out = f.integer("vision_output_dim", 7680, kMaxWidth);
  const Json* ratios = f.config().find("supported_aspect_ratios");
  const std::int64_t ids = ratios != nullptr && ratios->is_array() ? static_cast<std::int64_t>(ratios->size()) + 1 : 9;
  if (f.error()) return;
  ParameterList p = outside(arch);
  const std::string at = "model.vision_model.";
  p.add(at + "class_embedding", {width(hidden)});
  add_patches(p, at + "patch_embedding", hidden, channels, patch, 0, false);
  p.add(at + "gated_positional_embedding.gate", {width(1)});
  p.add(at + "gated_positional_embedding.embedding", {axis(Axis::position, tokens), width(hidden)});
  p.embedding(at + "gated_positional_embedding.tile_embedding", axis(Axis::classes, ids),
              axis(Axis::position, tiles * tokens, hidden));
  for (const char* name : {"pre_tile_positional_embedding", "post_tile_positional_embedding"}) {
    p.add(fmt::format("{}{}.gate", at, name), {width(1)});
    p.embedding(fmt::format("{}{}.embedding", at, name), axis(Axis::classes, ids), axis(Axis::position, tiles, hidden));
  }
  p.layer_norm(at + "layernorm_pre", width(hidden));
  p.layer_norm(at + "layernorm_post", width(hidden));
  const BlockNames names{.norm1 = "input_layernorm",
                         .norm2 = "post_attention_layernorm",
                         .projections = {"q_proj", "k_proj", "v_proj", "o_proj"}};
  const Block block{.hidden = hidden, .ffn = ffn, .heads = heads, .bias = false};
  write_layers(p, at + "transformer.layers", layers,
               [&](ParameterList& list, const std::string& layer) { add_block(list, layer, block, names); });
  write_layers(p, at + "global_transformer.layers", global, [&](ParameterList& list, const std::string& layer) {
    list.add(layer + "gate_attn", {width(1)});
    list.add(layer + "gate_ffn", {width(1)});
    add_block(list, layer, block, names);
  });
  p.linear("model.multi_modal_projector", width(out), width(arch.hidden), true);
}

// --- MiniMax M3 ------------------------------------------------------------------------------------------------------

struct MiniMax {
  DecoderConfig c;
  std::int64_t dense = 0;
  std::int64_t index_heads = 0;
  std::int64_t index_dim = 0;
  std::vector<OutlineTraits> layers;
};

// Which layers a list of zeros and ones names.
std::vector<bool> read_frequency(Fields& fields, const JsonObject& from, std::string_view key, std::size_t layers) {
  std::vector<bool> out;
  const Json* list = from.find(key);
  if (list == nullptr) return out;
  if (!list->is_array() || list->size() != layers) {
    fields.reject(key, "is no list with an entry for each layer");
    return out;
  }
  for (const Json& entry : *list) out.push_back(entry == 1);
  return out;
}

constexpr std::int32_t kIndexes = 1;

// layer_types says which layers choose blocks of tokens, mlp_layer_types which have experts; older files say both by
// lists of zeros and ones.
void read_minimax_layers(Fields& fields, MiniMax& from, const JsonObject& sparse) {
  const std::int64_t layers = from.c.layers;
  from.layers = same_layers(from.c, {.sparse = true});
  const std::size_t count = from.layers.size();
  const std::vector<std::string> feeds = read_layer_names(fields, "mlp_layer_types", layers);
  const std::vector<std::string> types = read_layer_names(fields, "layer_types", layers);
  const std::vector<bool> experts = read_frequency(fields, fields.config(), "moe_layer_freq", count);
  const std::vector<bool> chooses = read_frequency(fields, sparse, "sparse_attention_freq", count);
  for (std::size_t i = 0; i < count; ++i) {
    OutlineTraits& traits = from.layers[i];
    if (!feeds.empty()) traits.sparse = feeds[i] != "dense";
    else if (!experts.empty()) traits.sparse = experts[i];
    const bool indexes = !types.empty() ? types[i] == "minimax_m3_sparse" : !chooses.empty() && chooses[i];
    traits.variant = indexes ? kIndexes : 0;
  }
}

MiniMax read_minimax(Fields& fields) {
  MiniMax out;
  DecoderConfig& c = out.c;
  c = read_sizes(fields, {.vocab = 200064,
                          .hidden = 6144,
                          .intermediate = 3072,
                          .layers = 60,
                          .heads = 64,
                          .kv_heads = 4,
                          .head_dim = 128,
                          .max_positions = 524288});
  c.qk_norm = true;
  out.dense = fields.integer("dense_intermediate_size", 12288, kMaxWidth);
  c.mixture = {.experts = fields.integer("num_local_experts", 128, kMaxExperts),
               .top_k = fields.integer("num_experts_per_tok", 4, kMaxExperts),
               .intermediate = c.intermediate,
               .shared_intermediate = fields.integer("shared_intermediate_size", 3072, kMaxWidth)};
  const Json none = Json::object();
  const JsonObject sparse = nested_config(fields.config(), "sparse_attention_config", none);
  Fields sparse_fields(sparse);
  out.index_heads =
      fields.integer("index_n_heads", sparse_fields.integer("sparse_num_index_heads", 4, kMaxWidth), kMaxWidth);
  out.index_dim =
      fields.integer("index_head_dim", sparse_fields.integer("sparse_index_dim", 128, kMaxWidth), kMaxWidth);
  if (sparse_fields.error()) fields.reject(*sparse_fields.error());
  read_minimax_layers(fields, out, sparse);
  return out;
}

LayerKind minimax_layer(const MiniMax& from, const OutlineTraits& traits) {
  const DecoderConfig& c = from.c;
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_attention(p, layer.attention, "self_attn.", projections_of(c));
  if (traits.variant == kIndexes) {
    const std::string at = "self_attn.indexer.";
    p.linear(at + "q_proj", width(c.hidden), head_width(from.index_heads, from.index_dim), false);
    p.linear(at + "k_proj", width(c.hidden), width(from.index_dim), false);
    p.rms_norm(at + "q_norm", width(from.index_dim));
    p.rms_norm(at + "k_norm", width(from.index_dim));
    layer.attention.indexer_dim = from.index_dim;
  }
  if (traits.sparse) {
    layer.mixture.router = add_router(p, "mlp.gate", c);
    add_routed(p, layer, "mlp.experts.", c.hidden, c.mixture);
    layer.mixture.shared = add_gate_up(p, "mlp.shared_experts.", c.hidden, c.mixture.shared_intermediate);
    add_stored_buffer(layer, "mlp.gate.e_score_correction_bias", {c.mixture.experts});
  } else {
    layer.mlp = add_gate_up(p, "mlp.", c.hidden, from.dense);
  }
  add_norms(p, layer, c, NormKind::rms_one_plus);
  return layer;
}

Expected<Architecture> minimax_text(const JsonObject& config, std::string_view family, OutlineNames names) {
  Fields fields(config);
  names.norm_kind = NormKind::rms_one_plus;
  return finish(fields, read_minimax(fields)).map([&](const MiniMax& read) {
    return outline(read.c, family, names, read.layers,
                   [&](const OutlineTraits& traits) { return minimax_layer(read, traits); });
  });
}

void add_minimax_tower(Architecture& arch, Fields& f, Fields& whole) {
  const std::int64_t hidden = f.integer("hidden_size", 1280, kMaxWidth);
  const std::int64_t ffn = f.integer("intermediate_size", 5120, kMaxWidth);
  const std::int64_t layers = f.integer("num_hidden_layers", 32, kMaxLayers);
  const std::int64_t heads = f.integer("num_attention_heads", 16, kMaxWidth);
  const std::int64_t channels = f.integer("num_channels", 3, kMostOfSide);
  const std::int64_t patch = f.integer("patch_size", 14, kMostOfSide);
  const std::int64_t frames = f.integer("temporal_patch_size", 2, 64);
  const std::int64_t merge = f.integer("spatial_merge_size", 2, 64);
  const std::int64_t projected = whole.integer("projector_hidden_size", 6144, kMaxWidth);
  if (f.error() || whole.error()) return;
  ParameterList p = outside(arch);
  const std::string at = "model.vision_tower.";
  add_patches(p, at + "embeddings.proj", hidden, channels, patch, frames, false);
  p.layer_norm(at + "pre_layrnorm", width(hidden));
  write_layers(p, at + "layers", layers, [&](ParameterList& list, const std::string& layer) {
    add_block(list, layer, {.hidden = hidden, .ffn = ffn, .heads = heads});
  });
  const std::string to = "model.multi_modal_projector.";
  p.linear(to + "linear_1", width(hidden), width(projected), true);
  p.linear(to + "linear_2", width(projected), width(arch.hidden), true);
  p.linear(to + "merge_linear_1", width(arch.hidden * merge * merge), width(projected), true);
  p.linear(to + "merge_linear_2", width(projected), width(arch.hidden), true);
}

}  // namespace

Expected<Architecture> outline_llama4_text(const JsonObject& config) { return llama4_text(config, {}); }

Expected<Architecture> outline_llama4(const JsonObject& config) {
  const Json none = Json::object();
  const JsonObject vision = nested_config(config, "vision_config", none);
  const JsonObject text = nested_config(config, "text_config", none);
  Fields fields(vision);
  auto arch = llama4_text(text, {.prefix = "language_model.model.", .head = "language_model.lm_head"});
  if (arch) add_llama4_tower(*arch, fields);
  return failed({&fields}, std::move(arch));
}

Expected<Architecture> outline_mllama(const JsonObject& config) {
  const Json none = Json::object();
  const JsonObject vision = nested_config(config, "vision_config", none);
  const JsonObject text = nested_config(config, "text_config", none);
  Fields fields(vision);
  Fields whole(config);
  auto arch = mllama_text(text, whole.boolean("tie_word_embeddings", false));
  if (arch) add_mllama_tower(*arch, fields);
  return failed({&fields, &whole}, std::move(arch));
}

Expected<Architecture> outline_minimax_m3(const JsonObject& config) { return minimax_text(config, "minimax_m3", {}); }

Expected<Architecture> outline_minimax_m3_vl(const JsonObject& config) {
  const Json none = Json::object();
  const JsonObject vision = nested_config(config, "vision_config", none);
  const JsonObject text = nested_config(config, "text_config", none);
  Fields fields(vision);
  Fields whole(config);
  auto arch = minimax_text(text, "minimax_m3_vl", {.prefix = "model.language_model."});
  if (arch) add_minimax_tower(*arch, fields, whole);
  return failed({&fields, &whole}, std::move(arch));
}

}  // namespace ullage::model
