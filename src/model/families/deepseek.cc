// deepseek_v2 and deepseek_v3 (transformers: models/deepseek_v2/modeling_deepseek_v2.py, models/deepseek_v3/
// modeling_deepseek_v3.py).
#include "model/families/deepseek.h"

#include <fmt/core.h>

#include "base/json.h"
#include "model/families/latent.h"
#include "model/families/moe.h"

namespace ullage::model {
namespace {

// --- deepseek_v2 -----------------------------------------------------------------------------------------------------

// Probabilities in fp32; with groups, only those in the groups whose best experts are best. Python's names live until
// the weights are there.
Routing route_v2(Modules& m, const Mixture& mixture, Tensor logits) {
  logits = tensor::view(logits, {-1, mixture.experts.count});
  const Tensor probabilities = tensor::softmax(logits, DType::f32);
  Tensor group_scores, best_groups, group_mask, score_mask;
  Tensor candidates = probabilities;
  if (mixture.groups > 0) {
    const std::int64_t in_group = mixture.experts.count / mixture.groups;
    Tensor by_group = tensor::view(probabilities, {-1, mixture.groups, in_group});
    group_scores = tensor::max_last(std::move(by_group), false).values;
    best_groups = tensor::topk(group_scores, mixture.top_groups).indices;
    group_mask = tensor::zeros_like(group_scores);
    score_mask = spread(group_mask, in_group);
    Tensor outside;
    {
      const Tensor inside = tensor::to(score_mask, DType::boolean);
      outside = tensor::empty(m.context(), tensor::Op::logical_not, inside.sizes(), DType::boolean);
    }
    candidates = tensor::masked_fill(probabilities, std::move(outside));
  }
  tensor::Ranked top = tensor::topk(candidates, mixture.top_k);
  top.values = tensor::mul_scalar(top.values);
  return {{}, std::move(top.values), std::move(top.indices)};
}

Tensor block_v2(Modules& m, const LayerKind& layer, Tensor hidden) {
  const Mixture& mixture = layer.mixture;
  const Tensor residuals = hidden;
  const Tensor logits = m.linear_in_fp32(mixture.router, hidden);
  const Routing routing = route_v2(m, mixture, logits);
  hidden = tokens_of(hidden);
  hidden = run_experts(m, mixture, hidden, routing.chosen, routing.weights);
  hidden = tensor::view(hidden, residuals.sizes());
  Tensor shared = call([&](Tensor x) { return m.mlp(mixture.shared, x); }, residuals);
  return tensor::add(hidden, std::move(shared));
}

LayerKind kind_v2(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_latent_projections(p, layer, c);
  if (traits.sparse) {
    layer.mixture = empty_mixture(c);
    add_experts(p, "mlp.experts", c, layer.mixture.experts);
    layer.mixture.router = add_router(p, "mlp.gate", c);
    layer.mixture.shared = add_mlp(p, "mlp.shared_experts", c, c.mixture.shared_intermediate);
  } else {
    add_gated_mlp(p, layer, c);
  }
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

void read_method(Fields& fields, MixtureConfig& mixture) {
  constexpr std::string_view kKey = "topk_method";
  const std::string method = fields.config().string(kKey, "greedy").value_or("");
  if (method == "greedy") return;
  // Read, not recorded: the class of transformers 5.12.1 fails there for want of an attribute.
  if (method == "group_limited_greedy") {
    read_groups(fields, mixture, 1, 1);
    return;
  }
  fields.reject(kKey, "is not modelled; known are greedy, group_limited_greedy");
}

void read_mixture(Fields& fields, DecoderConfig& c, const MixtureConfig& defaults, std::int64_t shared) {
  MixtureConfig& mixture = c.mixture;
  mixture.experts = fields.integer("n_routed_experts", defaults.experts, kMaxExperts);
  mixture.top_k = fields.integer("num_experts_per_tok", defaults.top_k, kMaxExperts);
  mixture.intermediate = fields.integer("moe_intermediate_size", defaults.intermediate, kMaxWidth);
  mixture.shared_intermediate = mixture.intermediate * fields.integer("n_shared_experts", shared, kMaxExperts);
  mixture.run = read_experts_run(fields);
  check_mixture(fields, mixture, "num_experts_per_tok");
}

void read_rest(Fields& fields, DecoderConfig& c) {
  c.attention_dropout = fields.optional_probability("attention_dropout", 0);
  read_attention_bias(fields, c);
  c.rotary = read_rotary(fields, c.latent.rope_dim, c.max_positions);
}

// --- deepseek_v3 -----------------------------------------------------------------------------------------------------

LayerKind kind_v3(const DecoderConfig& c, const LayerTraits& traits, bool buffer_in_fp32) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_latent_projections(p, layer, c);
  if (traits.sparse) add_corrected_mixture(p, layer, c, buffer_in_fp32);
  else add_gated_mlp(p, layer, c);
  add_norms(p, layer, c, NormKind::rms);
  return layer;
}

// mlp_layer_types, "dense" or "sparse" for each layer; without it all but the first are sparse.
void read_mlp_types(Fields& fields, DecoderConfig& c) {
  constexpr std::string_view kKey = "mlp_layer_types";
  dense_first(c, 1);
  if (!fields.has(kKey)) return;
  const auto named = fields.config().strings(kKey);
  if (!named) return fields.reject(named.error());
  if (static_cast<std::int64_t>(named->size()) != c.layers) {
    return fields.reject(kKey, fmt::format("{} entries for {} layers; give one for each", named->size(), c.layers));
  }
  for (std::size_t i = 0; i < named->size(); ++i) {
    const std::string& name = (*named)[i];
    if (name != "dense" && name != "sparse") {
      fields.reject(kKey, fmt::format("'{}' is not modelled; expected dense or sparse", excerpt(name)));
    }
    c.traits[i].sparse = name == "sparse";
  }
}

}  // namespace

Expected<Architecture> build_deepseek_v2(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {});
  read_latent(fields, c, {});
  read_rest(fields, c);
  c.rotary.form = RotaryForm::complex;
  c.mlp_bias = fields.boolean("mlp_bias", false);
  if (!fields.has("num_experts_per_tok")) {
    fields.reject("num_experts_per_tok", "missing; give the number of experts that a token goes to");
  }
  read_mixture(fields, c, {.experts = 64, .top_k = 1, .intermediate = 1407}, 2);
  read_method(fields, c.mixture);
  dense_first(c, fields.count("first_k_dense_replace", 0, kMaxLayers));
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return decoder(read, "deepseek_v2", NormKind::rms, kind_v2);
  });
}

Expected<Architecture> build_deepseek_v3(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.vocab = 129280,
                                          .hidden = 7168,
                                          .intermediate = 18432,
                                          .layers = 61,
                                          .heads = 128,
                                          .kv_heads = 128,
                                          .head_dim = 192,
                                          .max_positions = 4096});
  read_latent(fields, c, {});
  read_rest(fields, c);
  if (fields.boolean("rope_interleave", true)) c.rotary.form = RotaryForm::unzipped;
  read_mixture(fields, c, {.experts = 256, .top_k = 8, .intermediate = 2048}, 1);
  c.mixture.normalizes = fields.boolean("norm_topk_prob", true);
  read_groups(fields, c.mixture, 8, 4);
  dense_first(c, fields.count("first_k_dense_replace", 3, kMaxLayers));
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return decoder(read, "deepseek_v3", NormKind::rms,
                   [](const DecoderConfig& of, const LayerTraits& traits) { return kind_v3(of, traits, false); });
  });
}

Expected<Architecture> build_glm4_moe_lite(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {.vocab = 154880,
                                          .hidden = 2048,
                                          .intermediate = 10240,
                                          .layers = 47,
                                          .heads = 20,
                                          .kv_heads = 20,
                                          .head_dim = 256,
                                          .max_positions = 202752,
                                          .null_kv_heads = false});
  read_latent(fields, c, {.q_rank = 768, .nope_dim = 192, .value_dim = 256});
  read_rest(fields, c);
  if (fields.boolean("rope_interleave", true)) c.rotary.form = RotaryForm::unzipped;
  read_mixture(fields, c, {.experts = 64, .top_k = 4, .intermediate = 1536}, 1);
  c.mixture.normalizes = fields.boolean("norm_topk_prob", true);
  read_groups(fields, c.mixture, 1, 1);
  read_mlp_types(fields, c);
  return finish(fields, std::move(c)).map([](const DecoderConfig& read) {
    return decoder(read, "glm4_moe_lite", NormKind::rms,
                   [](const DecoderConfig& of, const LayerTraits& traits) { return kind_v3(of, traits, true); });
  });
}

Output forward_deepseek_v2(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(
      m, arch, std::move(batch),
      [](Modules& modules, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
        return pre_norm_layer(modules, layer, latent_attention, sparse_or_dense<block_v2>, std::move(hidden), rotary,
                              std::move(mask));
      });
}

Output forward_deepseek_v3(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(
      m, arch, std::move(batch),
      [](Modules& modules, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
        return pre_norm_layer(modules, layer, latent_attention, sparse_or_dense<corrected_block>, std::move(hidden),
                              rotary, std::move(mask));
      });
}

}  // namespace ullage::model
