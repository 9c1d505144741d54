// What mixtures of experts share: the fields of their configurations, the parameters of their blocks, and the routers.
#pragma once

#include <string_view>

#include "model/families/decoder.h"

namespace ullage::model {

// experts_implementation: grouped_mm unless it says otherwise.
ExpertsRun read_experts_run(Fields& fields);

// output_router_logits: the load-balancing loss is part of the loss.
void read_router_loss(Fields& fields, MixtureConfig& c);
// Rejects it, with the reason.
void refuse_router_loss(Fields& fields, std::string_view reason);

// Rejects more experts for a token than there are.
void check_mixture(Fields& fields, const MixtureConfig& c, std::string_view top_k_key);

// Group-limited routing: n_group and topk_group.
void read_groups(Fields& fields, MixtureConfig& c, std::int64_t groups, std::int64_t top_groups);

// Layers from `dense` on have a mixture of experts.
void dense_first(DecoderConfig& c, std::int64_t dense);

// --- parameters ------------------------------------------------------------------------------------------------------
// The mixture of a layer, without parameters yet.
Mixture empty_mixture(const DecoderConfig& c);
// "<name>.gate_up_proj" and "<name>.down_proj", stacked.
void add_experts(ParameterList& p, const std::string& name, const DecoderConfig& c, Experts& experts);
// "<name>.weight" [experts, hidden].
Linear add_router(ParameterList& p, const std::string& name, const DecoderConfig& c, bool bias = false);
// "<name>.gate_proj", "<name>.up_proj" and "<name>.down_proj" of that width.
Mlp add_mlp(ParameterList& p, const std::string& name, const DecoderConfig& c, std::int64_t width);
// mlp: experts, gate with a buffer that corrects its scores, and shared_experts (deepseek_v3).
void add_corrected_mixture(ParameterList& p, LayerKind& layer, const DecoderConfig& c, bool buffer_in_fp32);

// --- forward ---------------------------------------------------------------------------------------------------------
// What a router gives back: logits [tokens, experts], and for each token the chosen experts with their weights.
struct Routing {
  Tensor logits;
  Tensor weights;
  Tensor chosen;
};

// Multiplies x by noise, in place.
void jitter(Modules& m, const Tensor& x);

// Divides each row by its sum, in place.
void normalize_rows(const Tensor& weights);

// [tokens, groups] as [tokens, groups x in_group], each so many times.
Tensor spread(Tensor x, std::int64_t in_group);

// Probabilities in fp32, the best of them in the logits' type (Qwen).
Routing route_by_softmax(Modules& m, const Mixture& mixture, Tensor hidden);

// Scores by sigmoid, in fp32; experts are chosen within the best groups by their corrected scores (deepseek_v3).
Tensor corrected_block(Modules& m, const LayerKind& layer, Tensor hidden);

// Feed-forward of the layer: its mixture as `block` runs it, or dense where it has none.
template <FeedForward block>
Tensor sparse_or_dense(Modules& m, const LayerKind& layer, Tensor hidden) {
  return layer.mixture.experts.count > 0 ? block(m, layer, std::move(hidden)) : m.mlp(layer.mlp, std::move(hidden));
}

// The experts, as a module call.
Tensor run_experts(Modules& m, const Mixture& mixture, const Tensor& tokens, const Tensor& chosen,
                   const Tensor& weights);

// [batch, seq, hidden] as [batch x seq, hidden].
Tensor tokens_of(const Tensor& hidden);

}  // namespace ullage::model
