// Gated delta nets among attention: Qwen3-Next and Qwen3.5. Sources: transformers'
// models/{qwen3_next,qwen3_5,qwen3_5_moe}.
#include "model/families/moe.h"
#include "model/families/outline_hybrid.h"
#include "model/families/outline_parts.h"
#include "model/families/outline_vision.h"
#include "model/families/vision_language.h"

namespace ullage::model {
namespace {

struct DeltaConfig {
  DecoderConfig c;
  DeltaShape delta;
  std::vector<OutlineTraits> layers;
};

// Every fourth layer has full attention.
DeltaConfig read_delta(Fields& fields, const DecoderDefaults& defaults) {
  DeltaConfig out;
  out.c = read_sizes(fields, defaults);
  read_attention_bias(fields, out.c);
  out.c.qk_norm = true;
  out.delta = {.hidden = out.c.hidden,
               .key_heads = fields.integer("linear_num_key_heads", 16, kMaxWidth),
               .value_heads = fields.integer("linear_num_value_heads", 32, kMaxWidth),
               .key_dim = fields.integer("linear_key_head_dim", 128, 1 << 16),
               .value_dim = fields.integer("linear_value_head_dim", 128, 1 << 16),
               .kernel = fields.integer("linear_conv_kernel_dim", 4, 1024)};
  out.layers = read_mixers(fields, "layer_types", out.c, Mixer::linear_attention,
                           {{"linear_attention", Mixer::linear_attention}, {"full_attention", Mixer::attention}});
  const std::int64_t interval = fields.integer("full_attention_interval", 4, kMaxLayers);
  if (fields.has("layer_types")) return out;
  for (std::size_t i = 0; i < out.layers.size(); ++i) {
    if ((i + 1) % static_cast<std::size_t>(interval) == 0) out.layers[i].mixer = Mixer::attention;
  }
  return out;
}

void read_delta_experts(Fields& fields, DecoderConfig& c, std::int64_t experts, std::int64_t top_k) {
  c.mixture = {.experts = fields.count("num_experts", experts, kMaxExperts),
               .top_k = fields.integer("num_experts_per_tok", top_k, kMaxExperts),
               .intermediate = fields.integer("moe_intermediate_size", 512, kMaxWidth),
               .shared_intermediate = fields.integer("shared_expert_intermediate_size", 512, kMaxWidth)};
}

LayerKind delta_layer(const DeltaConfig& from, const OutlineTraits& traits) {
  const DecoderConfig& c = from.c;
  LayerKind layer = outline_layer(c, traits);
  ParameterList p(layer.parameters, true);
  if (traits.mixer == Mixer::linear_attention) {
    add_gated_delta(p, layer, "linear_attn.", from.delta);
    layer.recurrent->matrix_in_fp32 = true;
  } else {
    Projections projections = projections_of(c);
    projections.gated = true;
    add_attention(p, layer.attention, "self_attn.", projections);
  }
  if (traits.sparse) {
    layer.mixture.router = add_router(p, "mlp.gate", c);
    add_routed(p, layer, "mlp.experts.", c.hidden, c.mixture);
    layer.mixture.shared = add_gated(p, "mlp.shared_expert.", c.hidden, c.mixture.shared_intermediate);
    layer.mixture.shared_gate = p.linear("mlp.shared_expert_gate", width(c.hidden), axis(Axis::classes, 1), false);
  } else {
    add_gated_mlp(p, layer, c);
  }
  add_norms(p, layer, c, NormKind::rms_one_plus);
  return layer;
}

Expected<Architecture> delta_model(Fields& fields, DeltaConfig from, std::string_view family, OutlineNames names) {
  names.norm_kind = NormKind::rms_one_plus;
  return finish(fields, std::move(from)).map([&](const DeltaConfig& read) {
    return outline(read.c, family, names, read.layers,
                   [&](const OutlineTraits& traits) { return delta_layer(read, traits); });
  });
}

Expected<Architecture> qwen3_5_text(const JsonObject& config, const OutlineNames& names) {
  Fields fields(config);
  return delta_model(fields,
                     read_delta(fields, {.vocab = 248320,
                                         .hidden = 4096,
                                         .intermediate = 12288,
                                         .layers = 32,
                                         .heads = 16,
                                         .kv_heads = 4,
                                         .head_dim = 256,
                                         .max_positions = 32768}),
                     "qwen3_5", names);
}

Expected<Architecture> qwen3_5_moe_text(const JsonObject& config, const OutlineNames& names) {
  Fields fields(config);
  DeltaConfig from = read_delta(fields, {.vocab = 248320,
                                         .hidden = 2048,
                                         .layers = 40,
                                         .heads = 16,
                                         .kv_heads = 2,
                                         .head_dim = 256,
                                         .max_positions = 32768});
  read_delta_experts(fields, from.c, 256, 8);
  for (OutlineTraits& traits : from.layers) traits.sparse = true;
  return delta_model(fields, std::move(from), "qwen3_5_moe", names);
}

const OutlineNames kLanguageModel{.prefix = "model.language_model."};

using TextBuilder = Expected<Architecture> (*)(const JsonObject& config, const OutlineNames& names);

// The text model behind the tower of Qwen3-VL.
Expected<Architecture> with_tower(const JsonObject& config, TextBuilder build) {
  const Json none = Json::object();
  const JsonObject text = nested_config(config, "text_config", none);
  const bool tied = config.boolean("tie_word_embeddings", false).value_or(false);
  Json with_tie = text.json();
  if (with_tie.is_object()) with_tie["tie_word_embeddings"] = tied;
  auto arch = build(JsonObject(with_tie, text.where()), kLanguageModel);
  if (!arch) return arch;
  const auto tower = add_qwen_tower(*arch, nested_config(config, "vision_config", none));
  if (!tower) return tl::unexpected<Error>(tower.error());
  return arch;
}

}  // namespace

Expected<Architecture> outline_qwen3_next(const JsonObject& config) {
  Fields fields(config);
  DeltaConfig from = read_delta(fields, {.vocab = 151936,
                                         .hidden = 2048,
                                         .intermediate = 5632,
                                         .layers = 48,
                                         .heads = 16,
                                         .kv_heads = 2,
                                         .head_dim = 256,
                                         .max_positions = 32768});
  from.delta.joined = true;
  read_delta_experts(fields, from.c, 512, 10);
  const std::int64_t step = fields.integer("decoder_sparse_step", 1, kMaxLayers);
  const std::vector<bool> dense = read_indices(fields, "mlp_only_layers", from.c.layers);
  for (std::size_t i = 0; i < from.layers.size(); ++i) {
    from.layers[i].sparse = !dense[i] && from.c.mixture.experts > 0 && (i + 1) % static_cast<std::size_t>(step) == 0;
  }
  return delta_model(fields, std::move(from), "qwen3_next", {});
}

Expected<Architecture> outline_qwen3_5_text(const JsonObject& config) { return qwen3_5_text(config, {}); }
Expected<Architecture> outline_qwen3_5_moe_text(const JsonObject& config) { return qwen3_5_moe_text(config, {}); }
Expected<Architecture> outline_qwen3_5(const JsonObject& config) { return with_tower(config, qwen3_5_text); }
Expected<Architecture> outline_qwen3_5_moe(const JsonObject& config) { return with_tower(config, qwen3_5_moe_text); }

}  // namespace ullage::model
