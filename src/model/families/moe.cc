#include "model/families/moe.h"

#include <fmt/core.h>

namespace ullage::model {
namespace {

constexpr std::string_view kRouterLoss = "output_router_logits";

}  // namespace

ExpertsRun read_experts_run(Fields& fields) {
  constexpr std::string_view kKey = "experts_implementation";
  const Json* value = fields.config().find(kKey);
  if (value == nullptr || value->is_null()) return ExpertsRun::grouped;
  const std::string name = fields.config().string(kKey, "").value_or("");
  if (name == "grouped_mm") return ExpertsRun::grouped;
  if (name == "batched_mm") return ExpertsRun::batched;
  fields.reject(kKey, fmt::format("{} is not modelled; known are grouped_mm, batched_mm", value_excerpt(*value)));
  return ExpertsRun::grouped;
}

void read_router_loss(Fields& fields, MixtureConfig& c) { c.balances = fields.boolean(kRouterLoss, false); }

void refuse_router_loss(Fields& fields, std::string_view reason) {
  if (fields.boolean(kRouterLoss, false)) fields.reject(kRouterLoss, fmt::format("{}; set it to false", reason));
}

void check_mixture(Fields& fields, const MixtureConfig& c, std::string_view top_k_key) {
  if (c.top_k > c.experts) {
    fields.reject(top_k_key,
                  fmt::format("{} experts for a token, but there are {}; set at most that many", c.top_k, c.experts));
  }
}

void read_groups(Fields& fields, MixtureConfig& c, std::int64_t groups, std::int64_t top_groups) {
  c.groups = fields.integer("n_group", groups, kMaxExperts);
  c.top_groups = fields.integer("topk_group", top_groups, kMaxExperts);
  if (c.experts % c.groups != 0) {
    fields.reject("n_group", fmt::format("{} groups do not divide {} experts; set a divisor", c.groups, c.experts));
  } else if (c.top_groups > c.groups) {
    fields.reject("topk_group", fmt::format("{} of {} groups; set at most that many", c.top_groups, c.groups));
  } else if (c.top_k > c.top_groups * (c.experts / c.groups)) {
    fields.reject("num_experts_per_tok",
                  fmt::format("{} experts for a token, but its groups hold {}; set at most that many", c.top_k,
                              c.top_groups * (c.experts / c.groups)));
  }
}

void dense_first(DecoderConfig& c, std::int64_t dense) {
  for (std::int64_t i = 0; i < c.layers; ++i) {
    LayerTraits traits;
    traits.sparse = i >= dense;
    c.traits.push_back(traits);
  }
}

// --- parameters ------------------------------------------------------------------------------------------------------

Mixture empty_mixture(const DecoderConfig& c) {
  Mixture mixture;
  mixture.top_k = c.mixture.top_k;
  mixture.groups = c.mixture.groups;
  mixture.top_groups = c.mixture.top_groups;
  mixture.normalizes = c.mixture.normalizes;
  mixture.jitters = c.mixture.jitters;
  mixture.experts.count = c.mixture.experts;
  mixture.experts.run = c.mixture.run;
  mixture.experts.activation = c.activation;
  return mixture;
}

void add_experts(ParameterList& p, const std::string& name, const DecoderConfig& c, Experts& experts) {
  const Dimension count = axis(Axis::expert, c.mixture.experts);
  const Dimension ffn = axis(Axis::ffn, c.mixture.intermediate);
  const Dimension both{{ffn.parts[0], ffn.parts[0]}};
  experts.gate_up = p.add(name + ".gate_up_proj", {count, both, hidden_axis(c)});
  experts.down = p.add(name + ".down_proj", {count, hidden_axis(c), ffn});
}

Linear add_router(ParameterList& p, const std::string& name, const DecoderConfig& c, bool bias) {
  return p.linear(name, hidden_axis(c), axis(Axis::expert, c.mixture.experts), bias);
}

Mlp add_mlp(ParameterList& p, const std::string& name, const DecoderConfig& c, std::int64_t width) {
  const Dimension ffn = axis(Axis::ffn, width);
  Mlp mlp;
  mlp.activation = c.activation;
  mlp.gate = p.linear(name + ".gate_proj", hidden_axis(c), ffn, c.mlp_bias);
  mlp.up = p.linear(name + ".up_proj", hidden_axis(c), ffn, c.mlp_bias);
  mlp.down = p.linear(name + ".down_proj", ffn, hidden_axis(c), c.mlp_bias);
  return mlp;
}

void add_corrected_mixture(ParameterList& p, LayerKind& layer, const DecoderConfig& c, bool buffer_in_fp32) {
  layer.mixture = empty_mixture(c);
  add_experts(p, "mlp.experts", c, layer.mixture.experts);
  layer.mixture.router = add_router(p, "mlp.gate", c);
  layer.mixture.correction = static_cast<std::int32_t>(layer.buffers.size());
  layer.buffers.push_back({"mlp.gate.e_score_correction_bias", {c.mixture.experts}, DType::f32, !buffer_in_fp32, true});
  layer.mixture.shared = add_mlp(p, "mlp.shared_experts", c, c.mixture.shared_intermediate);
}

// --- forward ---------------------------------------------------------------------------------------------------------

void jitter(Modules& m, const Tensor& x) {
  Tensor noise = tensor::empty(m.context(), tensor::Op::empty, x.sizes(), x.dtype());
  tensor::mul_in_place(x, std::move(noise));
}

void normalize_rows(const Tensor& weights) {
  Tensor total = tensor::sum_dim(weights, -1, true);
  tensor::div_in_place(weights, std::move(total));
}

Tensor tokens_of(const Tensor& hidden) { return tensor::view(hidden, {-1, hidden.size(-1)}); }

Tensor run_experts(Modules& m, const Mixture& mixture, const Tensor& tokens, const Tensor& chosen,
                   const Tensor& weights) {
  return call([&](Tensor x, Tensor c, Tensor w) { return m.experts(mixture.experts, x, c, w); }, tokens, chosen,
              weights);
}

Routing route_by_softmax(Modules& m, const Mixture& mixture, Tensor hidden_in) {
  const Tensor hidden = tokens_of(hidden_in);
  Routing out;
  out.logits = m.linear(mixture.router, hidden);
  const Tensor probabilities = tensor::softmax(out.logits, DType::f32);
  tensor::Ranked top = tensor::topk(probabilities, mixture.top_k);
  if (mixture.normalizes) normalize_rows(top.values);
  out.weights = tensor::to(std::move(top.values), out.logits.dtype());
  out.chosen = std::move(top.indices);
  return out;
}

// [tokens, groups] as [tokens, groups x in_group], each so many times.
Tensor spread(Tensor x_in, std::int64_t in_group) {
  Tensor x = std::move(x_in);
  const std::int64_t tokens = x.size(0);
  const std::int64_t groups = x.size(1);
  x = tensor::unsqueeze(std::move(x), -1);
  x = tensor::expand(std::move(x), {tokens, groups, in_group});
  return tensor::reshape(std::move(x), {tokens, -1});
}

namespace {

Tensor logits_in_fp32(Modules& m, const Mixture& mixture, Tensor hidden) {
  hidden = tokens_of(hidden);
  return m.linear_in_fp32(mixture.router, hidden);
}

// Python's names, and with them the memory behind them, live until the weights are there.
Routing route_corrected(Modules& m, const Mixture& mixture, Tensor logits) {
  const std::int64_t in_group = mixture.experts.count / mixture.groups;
  const Tensor scores = tensor::sigmoid(std::move(logits));
  Tensor correction = m.buffer(mixture.correction);
  const Tensor corrected = tensor::add(scores, std::move(correction));
  Tensor by_group = tensor::view(corrected, {-1, mixture.groups, in_group});
  // A group is as good as its two best experts are together.
  Tensor best_two = tensor::topk(std::move(by_group), 2).values;
  const Tensor group_scores = tensor::sum_dim(std::move(best_two), -1, false);
  const Tensor best_groups = tensor::topk(group_scores, mixture.top_groups).indices;
  const Tensor group_mask = tensor::zeros_like(group_scores);
  const Tensor score_mask = spread(group_mask, in_group);
  Tensor outside;
  {
    const Tensor inside = tensor::to(score_mask, DType::boolean);
    outside = tensor::empty(m.context(), tensor::Op::logical_not, inside.sizes(), DType::boolean);
  }
  const Tensor candidates = tensor::masked_fill(corrected, std::move(outside));
  Routing out;
  out.chosen = tensor::topk(candidates, mixture.top_k).indices;
  out.weights = tensor::gather_last(scores, out.chosen);
  Tensor denominator;
  if (mixture.normalizes) {
    denominator = tensor::sum_dim(out.weights, -1, true);
    denominator = tensor::add_scalar(denominator);
    tensor::div_in_place(out.weights, denominator);
  }
  out.weights = tensor::mul_scalar(out.weights);
  return out;
}

}  // namespace

Tensor corrected_block(Modules& m, const LayerKind& layer, Tensor hidden) {
  const Mixture& mixture = layer.mixture;
  const Tensor residuals = hidden;
  const Tensor logits = call([&](Tensor x) { return logits_in_fp32(m, mixture, x); }, hidden);
  const Routing routing = route_corrected(m, mixture, logits);
  hidden = tokens_of(hidden);
  hidden = run_experts(m, mixture, hidden, routing.chosen, routing.weights);
  hidden = tensor::view(hidden, residuals.sizes());
  Tensor shared = call([&](Tensor x) { return m.mlp(mixture.shared, x); }, residuals);
  return tensor::add(hidden, std::move(shared));
}

}  // namespace ullage::model
