// Sources: transformers' models/{deepseek_v32,deepseek_v4,glm_moe_dsa}; the code published beside the weights of the
// first DeepSeek MoE, Kimi K2 and MiniCPM 3.
#include "model/families/outline_latent.h"

#include <fmt/core.h>

#include <algorithm>

#include "model/families/latent.h"
#include "model/families/moe.h"
#include "model/families/outline_parts.h"

namespace ullage::model {
namespace {

// An indexer chooses the tokens that a layer's attention reads; layers may use what the one before has chosen.
struct Indexer {
  std::int64_t heads = 0;  // 0: there is none
  std::int64_t dim = 0;
};

void read_experts(Fields& fields, DecoderConfig& c, const MixtureConfig& defaults, std::int64_t shared) {
  MixtureConfig& mixture = c.mixture;
  mixture.experts = fields.integer("n_routed_experts", defaults.experts, kMaxExperts);
  mixture.top_k = fields.integer("num_experts_per_tok", defaults.top_k, kMaxExperts);
  mixture.intermediate = fields.integer("moe_intermediate_size", defaults.intermediate, kMaxWidth);
  const std::int64_t count =
      fields.is_null("n_shared_experts") ? 0 : fields.count("n_shared_experts", shared, kMaxExperts);
  mixture.shared_intermediate = mixture.intermediate * count;
  check_mixture(fields, mixture, "num_experts_per_tok");
}

// Dense layers first, or as mlp_layer_types says.
std::vector<OutlineTraits> sparse_layers(Fields& fields, const DecoderConfig& c, std::int64_t dense) {
  std::vector<OutlineTraits> layers = same_layers(c, {.mixer = Mixer::latent_attention});
  const std::vector<std::string> names = read_layer_names(fields, "mlp_layer_types", c.layers);
  const std::int64_t first = fields.count("first_k_dense_replace", dense, kMaxLayers);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].sparse = names.empty() ? static_cast<std::int64_t>(i) >= first : names[i] == "sparse";
  }
  return layers;
}

constexpr std::int32_t kIndexes = 1;  // variant of a layer with an indexer of its own

LayerKind latent_layer(const DecoderConfig& c, const Indexer& indexer, const OutlineTraits& traits) {
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_latent_projections(p, layer, c);
  if (traits.variant == kIndexes) {
    add_indexer(p, layer.attention, "self_attn.indexer.", c.hidden, c.latent.q_rank, indexer.heads, indexer.dim);
  }
  if (traits.sparse) add_corrected_mixture(p, layer, c, false);
  else add_gated_mlp(p, layer, c);
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

struct SparseDefaults {
  DecoderDefaults sizes;
  LatentDefaults latent;
  std::int64_t dense = 3;
  Indexer indexer;
  std::int64_t experts = 256;
};

Expected<Architecture> sparse_latent(const JsonObject& config, std::string_view family,
                                     const SparseDefaults& defaults) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, defaults.sizes);
  read_latent(fields, c, defaults.latent);
  read_attention_bias(fields, c);
  read_experts(fields, c, {.experts = defaults.experts, .top_k = 8, .intermediate = 2048}, 1);
  std::vector<OutlineTraits> layers = sparse_layers(fields, c, defaults.dense);
  Indexer indexer;
  if (defaults.indexer.heads > 0) {
    indexer.heads = fields.integer("index_n_heads", defaults.indexer.heads, kMaxWidth);
    indexer.dim = fields.integer("index_head_dim", defaults.indexer.dim, kMaxWidth);
    const std::vector<std::string> types = read_layer_names(fields, "indexer_types", c.layers);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (types.empty() || types[i] == "full") layers[i].variant = kIndexes;
    }
    if (c.latent.q_rank == 0) fields.reject("q_lora_rank", "is null, but the indexer reads what queries come out of");
  }
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return outline(read, family, {}, layers,
                   [&](const OutlineTraits& traits) { return latent_layer(read, indexer, traits); });
  });
}

}  // namespace

Expected<Architecture> outline_deepseek_v32(const JsonObject& config) {
  SparseDefaults defaults;
  defaults.sizes = {
      .vocab = 129280, .hidden = 7168, .intermediate = 18432, .layers = 61, .heads = 128, .max_positions = 163840};
  defaults.indexer = {64, 128};
  return sparse_latent(config, "deepseek_v32", defaults);
}

Expected<Architecture> outline_glm_moe_dsa(const JsonObject& config) {
  SparseDefaults defaults;
  defaults.sizes = {
      .vocab = 154880, .hidden = 6144, .intermediate = 12288, .layers = 78, .heads = 64, .max_positions = 202752};
  defaults.latent = {.q_rank = 2048, .nope_dim = 192, .value_dim = 256};
  defaults.indexer = {32, 128};
  return sparse_latent(config, "glm_moe_dsa", defaults);
}

Expected<Architecture> outline_kimi_k2(const JsonObject& config) {
  SparseDefaults defaults;
  defaults.sizes = {
      .vocab = 129280, .hidden = 7168, .intermediate = 18432, .layers = 61, .heads = 128, .max_positions = 4096};
  defaults.dense = 0;
  return sparse_latent(config, "kimi_k2", defaults);
}

// --- MiniCPM 3 -------------------------------------------------------------------------------------------------------

Expected<Architecture> outline_minicpm3(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 73448,
                                        .hidden = 2560,
                                        .intermediate = 6400,
                                        .layers = 62,
                                        .heads = 40,
                                        .max_positions = 32768,
                                        .tied = true});
  const std::int64_t head = c.hidden / c.heads;
  read_latent(fields, c, {.q_rank = 768, .kv_rank = 256, .nope_dim = 64, .rope_dim = 32, .value_dim = head});
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return outline(read, "minicpm3", {}, same_layers(read, {.mixer = Mixer::latent_attention}),
                   [&](const OutlineTraits& traits) { return latent_layer(read, {}, traits); });
  });
}

// --- the first DeepSeek MoE: ordinary attention ----------------------------------------------------------------------

Expected<Architecture> outline_deepseek(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_sizes(fields, {.vocab = 102400, .hidden = 4096, .intermediate = 11008, .layers = 30});
  read_attention_bias(fields, c);
  read_experts(fields, c, {.experts = 64, .top_k = 6, .intermediate = 1407}, 2);
  std::vector<OutlineTraits> layers = sparse_layers(fields, c, 0);
  for (OutlineTraits& traits : layers) traits.mixer = Mixer::attention;
  return finish(fields, std::move(c)).map([&](const DecoderConfig& read) {
    return outline(read, "deepseek", {}, layers, [&](const OutlineTraits& traits) {
      LayerKind layer = outline_layer(read, traits);
      ParameterList p(layer.parameters, true);
      add_attention(p, layer.attention, "self_attn.", projections_of(read));
      if (traits.sparse) {
        add_routed(p, layer, "mlp.experts.", read.hidden, read.mixture);
        layer.mixture.router = add_router(p, "mlp.gate", read);
        if (read.mixture.shared_intermediate > 0)
          layer.mixture.shared = add_mlp(p, "mlp.shared_experts", read, read.mixture.shared_intermediate);
      } else {
        add_gated_mlp(p, layer, read);
      }
      add_norms(p, layer, read, NormKind::rms);
      return layer;
    });
  });
}

// --- DeepSeek V4 -----------------------------------------------------------------------------------------------------
namespace {

// Attention of one latent head for keys and values; compressors make entries of several tokens beside those of a
// window; several residual streams are mixed before and behind each part (hyper-connections).
struct V4 {
  DecoderConfig c;
  std::int64_t q_rank = 0;
  std::int64_t out_rank = 0;
  std::int64_t out_groups = 0;
  std::int64_t rope_dim = 0;
  Indexer indexer;
  std::int64_t streams = 0;
  std::int64_t compressed = 0;  // tokens of an entry, of layers with an indexer
  std::int64_t heavily = 0;     // of those without
};

constexpr std::int32_t kPlain = 0;
constexpr std::int32_t kCompressed = 1;
constexpr std::int32_t kHeavily = 2;
constexpr std::int32_t kHashed = 4;  // added: experts are looked up by token instead of scored

// compress_ratios holds one more than there are layers, of the layer that predicts a token more.
std::vector<std::int32_t> compression(Fields& fields, const V4& v4) {
  const auto layers = static_cast<std::size_t>(v4.c.layers);
  std::vector<std::int32_t> out;
  const std::vector<std::string> types = read_layer_names(fields, "layer_types", v4.c.layers);
  for (const std::string& type : types) {
    out.push_back(type == "sliding_attention"             ? kPlain
                  : type == "compressed_sparse_attention" ? kCompressed
                                                          : kHeavily);
  }
  const Json* ratios = fields.config().find("compress_ratios");
  if (out.empty() && ratios != nullptr) {
    if (!ratios->is_array() || ratios->size() < layers)
      fields.reject("compress_ratios", "is no list with an entry for each layer");
    for (std::size_t i = 0; ratios->is_array() && i < std::min(layers, ratios->size()); ++i) {
      const Json& ratio = (*ratios)[i];
      if (ratio != 0 && ratio != v4.compressed && ratio != v4.heavily)
        fields.reject("compress_ratios", fmt::format("{} is not modelled; expected 0, {} or {}", value_excerpt(ratio),
                                                     v4.compressed, v4.heavily));
      out.push_back(ratio == 0 ? kPlain : ratio == v4.compressed ? kCompressed : kHeavily);
    }
  }
  // Without either field: two layers heavily compressed, then both kinds in turns.
  for (std::size_t i = out.size(); i < layers; ++i) out.push_back(i < 2 || i % 2 == 0 ? kHeavily : kCompressed);
  return out;
}

void add_compressor(ParameterList& p, LayerKind& layer, const V4& v4, std::int32_t kind) {
  const Dimension hidden = width(v4.c.hidden);
  const bool indexes = kind == kCompressed;
  const Dimension entry = width(indexes ? 2 * v4.c.head_dim : v4.c.head_dim);
  const std::string at = "self_attn.compressor.";
  const std::int64_t tokens = indexes ? v4.compressed : v4.heavily;
  TokenCache entries;
  entries.kind = TokenCacheKind::latent;
  entries.heads = 1;
  entries.key_dim = v4.c.head_dim;
  entries.rope_dim = v4.rope_dim;
  entries.tokens_per_entry = tokens;
  layer.also_keeps.push_back(entries);
  p.add(at + "position_bias", {axis(Axis::position, tokens), entry});
  p.linear(at + "kv_proj", hidden, entry, false);
  p.linear(at + "gate_proj", hidden, entry, false);
  p.rms_norm(at + "kv_norm", width(v4.c.head_dim));
  if (!indexes) return;
  const Dimension key = width(2 * v4.indexer.dim);
  p.add(at + "indexer.position_bias", {axis(Axis::position, v4.compressed), key});
  p.linear(at + "indexer.kv_proj", hidden, key, false);
  p.linear(at + "indexer.gate_proj", hidden, key, false);
  p.rms_norm(at + "indexer.kv_norm", width(v4.indexer.dim));
  p.linear(at + "indexer.q_b_proj", narrow(v4.q_rank), head_width(v4.indexer.heads, v4.indexer.dim), false);
  p.linear(at + "indexer.scorer.weights_proj", hidden, head_width(v4.indexer.heads, 1), false);
  entries.kind = TokenCacheKind::indexer;
  entries.key_dim = v4.indexer.dim;
  entries.rope_dim = 0;
  layer.also_keeps.push_back(entries);
}

void add_streams(ParameterList& p, const V4& v4, const std::string& at) {
  const std::int64_t mixes = (2 + v4.streams) * v4.streams;
  p.add(at + "fn",
        {width(mixes), joined(std::vector<Dimension>(static_cast<std::size_t>(v4.streams), width(v4.c.hidden)))});
  p.add(at + "base", {width(mixes)});
  p.add(at + "scale", {width(3)});
}

LayerKind layer_v4(const V4& v4, const OutlineTraits& traits) {
  const DecoderConfig& c = v4.c;
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  const Dimension hidden = width(c.hidden);
  Attention& a = layer.attention;
  const std::int64_t reduced = c.heads * c.head_dim / v4.out_groups;
  a.sinks = p.add("self_attn.sinks", {head_width(c.heads, 1)});
  a.latent.q_down = p.linear("self_attn.q_a_proj", hidden, narrow(v4.q_rank), false);
  a.latent.q_norm = p.rms_norm("self_attn.q_a_norm", narrow(v4.q_rank));
  a.latent.q_up = p.linear("self_attn.q_b_proj", narrow(v4.q_rank), head_width(c.heads, c.head_dim), false);
  a.latent.kv_down = p.linear("self_attn.kv_proj", hidden, kv_width(1, c.head_dim), false);
  a.latent.kv_norm = p.rms_norm("self_attn.kv_norm", width(c.head_dim));
  p.linear("self_attn.o_a_proj", width(reduced), axis(Axis::rank, v4.out_groups, v4.out_rank), false);
  a.o = p.linear("self_attn.o_b_proj", axis(Axis::rank, v4.out_groups, v4.out_rank), hidden, false);
  a.window = c.window;
  a.kv_heads = 1;
  a.latent.kv_rank = c.head_dim - v4.rope_dim;
  a.latent.rope_dim = v4.rope_dim;
  const std::int32_t kind = traits.variant & (kCompressed | kHeavily);
  if (kind != kPlain) add_compressor(p, layer, v4, kind);
  layer.mixture.router = add_router(p, "mlp.gate", c);
  add_routed(p, layer, "mlp.experts.", c.hidden, c.mixture);
  layer.mixture.shared = add_mlp(p, "mlp.shared_experts", c, c.mixture.shared_intermediate);
  if ((traits.variant & kHashed) != 0) {
    layer.buffers.push_back({"mlp.gate.tid2eid", {c.vocab, c.mixture.top_k}, DType::i64, false, true});
  } else {
    add_stored_buffer(layer, "mlp.gate.e_score_correction_bias", {c.mixture.experts});
  }
  add_norms(p, layer, c, NormKind::rms);
  add_streams(p, v4, "attn_hc.");
  add_streams(p, v4, "ffn_hc.");
  return layer;
}

V4 read_v4(Fields& fields) {
  V4 v4;
  v4.c = read_sizes(fields, {.vocab = 129280,
                             .hidden = 4096,
                             .layers = 43,
                             .heads = 64,
                             .kv_heads = 1,
                             .head_dim = 512,
                             .max_positions = 1048576});
  v4.q_rank = fields.integer("q_lora_rank", 1024, kMaxWidth);
  v4.out_rank = fields.integer("o_lora_rank", 1024, kMaxWidth);
  v4.out_groups = fields.integer("o_groups", 8, kMaxWidth);
  v4.rope_dim = fields.count("qk_rope_head_dim", 64, v4.c.head_dim);
  v4.indexer = {fields.integer("index_n_heads", 64, kMaxWidth), fields.integer("index_head_dim", 128, kMaxWidth)};
  v4.streams = fields.integer("hc_mult", 4, 64);
  v4.compressed = fields.integer("compress_rate_csa", 4, kMaxPositions);
  v4.heavily = fields.integer("compress_rate_hca", 128, kMaxPositions);
  v4.c.window = fields.integer("sliding_window", 128, kMaxPositions);
  read_experts(fields, v4.c, {.experts = 256, .top_k = 6, .intermediate = 2048}, 1);
  check_divides(fields, "o_groups", v4.out_groups, "num_attention_heads", v4.c.heads);
  return v4;
}

}  // namespace

Expected<Architecture> outline_deepseek_v4(const JsonObject& config) {
  Fields fields(config);
  const V4 v4 = read_v4(fields);
  const std::vector<std::int32_t> kinds = compression(fields, v4);
  const std::int64_t hashed = fields.count("num_hash_layers", 3, kMaxLayers);
  std::vector<OutlineTraits> layers = same_layers(v4.c, {.mixer = Mixer::latent_attention, .sparse = true});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].variant = kinds[i] | (static_cast<std::int64_t>(i) < hashed ? kHashed : 0);
  }
  if (fields.error()) return tl::unexpected<Error>(*fields.error());
  Architecture arch =
      outline(v4.c, "deepseek_v4", {}, layers, [&](const OutlineTraits& traits) { return layer_v4(v4, traits); });
  ParameterList p = outside(arch);
  const Dimension streams = joined(std::vector<Dimension>(static_cast<std::size_t>(v4.streams), width(v4.c.hidden)));
  p.add("model.hc_head.hc_fn", {width(v4.streams), streams});
  p.add("model.hc_head.hc_base", {width(v4.streams)});
  p.add("model.hc_head.hc_scale", {width(1)});
  return arch;
}

}  // namespace ullage::model
