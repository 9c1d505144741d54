// phimoe (transformers: models/phimoe/modeling_phimoe.py).
#include "model/families/phimoe.h"

#include <fmt/core.h>

#include "model/families/moe.h"

namespace ullage::model {
namespace {

using tensor::Op;

// Names that the published mixer binds twice: the second choice's take the place of the first's.
struct Names {
  Tensor threshold;
  Tensor best;
  Tensor scale;
  Tensor best_scores;
};

// Names of one choice, which live until both are made.
struct Choice {
  Tensor gates;   // probabilities of those that are not far below the best
  Tensor chosen;  // [tokens, 1]
  Tensor picked;  // the gate of the chosen one
  Tensor factor;
  Tensor multiplier;
};

Tensor no_gradient(Modules& m, Op op, const Tensor& like, DType dtype) {
  return tensor::empty(m.context(), op, like.sizes(), dtype);
}

// Masks what is far below the best: a Boolean for each score, without gradient.
void find_far(Modules& m, const Tensor& scores, const Tensor& candidates, Names& names) {
  const tensor::NoGrad no_grad(m.context());
  tensor::Ranked best = tensor::max_last(candidates, true);
  names.threshold = std::move(best.values);
  names.best = std::move(best.indices);
  {
    const Tensor magnitudes = no_gradient(m, Op::abs, scores, scores.dtype());
    Tensor scale = no_gradient(m, Op::clamp, scores, scores.dtype());
    names.scale = std::move(scale);
  }
  Tensor distance = no_gradient(m, Op::sub, scores, scores.dtype());
  distance = no_gradient(m, Op::div, scores, scores.dtype());
  names.threshold = no_gradient(m, Op::compare, scores, DType::boolean);
}

// At random, weighted by the candidates' scores.
Tensor sample(Modules& m, const Tensor& candidates) {
  Tensor noise = no_gradient(m, Op::empty, candidates, candidates.dtype());
  noise = tensor::log(std::move(noise));
  Tensor noisy = tensor::sub(candidates, std::move(noise));
  Tensor chosen = tensor::max_last(std::move(noisy), false).indices;
  return tensor::unsqueeze(std::move(chosen), -1);
}

// One where the choice is the best or chance has it so, a third elsewhere.
Tensor one_or_third(Modules& m, const Tensor& chosen, const Names& names, DType dtype) {
  Tensor mask;
  {
    const Tensor equal = no_gradient(m, Op::compare, chosen, DType::boolean);
    Tensor chance = no_gradient(m, Op::empty, names.best_scores, names.best_scores.dtype());
    chance = no_gradient(m, Op::compare, chosen, DType::boolean);
    mask = no_gradient(m, Op::logical_and, chosen, DType::boolean);
  }
  Tensor shifted = no_gradient(m, Op::add, mask, DType::f32);
  return tensor::to(std::move(shifted), dtype);
}

Choice choose(Modules& m, const Tensor& scores, const Tensor& candidates, Names& names) {
  find_far(m, scores, candidates, names);
  Choice out;
  out.gates = tensor::masked_fill(candidates, names.threshold);
  out.chosen = sample(m, out.gates);
  out.gates = tensor::softmax(out.gates);
  out.picked = tensor::gather_last(out.gates, out.chosen);
  tensor::Ranked best = tensor::max_last(out.gates, true);
  names.best_scores = std::move(best.values);
  names.best = std::move(best.indices);
  out.factor = one_or_third(m, out.chosen, names, out.gates.dtype());
  out.multiplier = tensor::mixer_multiplier(scores, out.picked, out.chosen, out.gates, out.factor);
  return out;
}

// The sparse mixer: one expert is sampled, then another from the rest.
Routing mix(Modules& m, const Tensor& scores) {
  Names names;
  Choice first = choose(m, scores, scores, names);
  const Tensor rest = tensor::scatter_value(scores, first.chosen);
  const Choice second = choose(m, scores, rest, names);
  Routing out;
  out.weights = tensor::cat({first.multiplier, second.multiplier}, -1);
  first.multiplier.reset();  // both together take its name
  out.chosen = tensor::cat({first.chosen, second.chosen}, -1);
  return out;
}

Routing route(Modules& m, const Mixture& mixture, Tensor hidden) {
  Tensor logits = m.linear(mixture.router, std::move(hidden));
  Routing out = mix(m, logits);
  out.logits = std::move(logits);
  return out;
}

Tensor block(Modules& m, const LayerKind& layer, Tensor hidden) {
  const tensor::Dims sizes = hidden.sizes();
  if (layer.mixture.jitters) {
    // Twice: the router does so again, by way of its view.
    jitter(m, hidden);
    Tensor noise = tensor::empty(m.context(), Op::empty, {hidden.numel() / sizes[-1], sizes[-1]}, hidden.dtype());
    tensor::mul_view_in_place(hidden, std::move(noise));
  }
  hidden = tokens_of(hidden);
  const Routing routing = call([&](Tensor x) { return route(m, layer.mixture, x); }, hidden);
  m.keep_router_logits(routing.logits);
  const Tensor out = run_experts(m, layer.mixture, hidden, routing.chosen, routing.weights);
  return tensor::reshape(out, sizes);
}

LayerKind kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  layer.mixture = empty_mixture(c);
  layer.mixture.router = add_router(p, "mlp.router", c);
  add_experts(p, "mlp.experts", c, layer.mixture.experts);
  add_norms(p, layer, c, NormKind::layer);
  return layer;
}

void read_mixture(Fields& fields, DecoderConfig& c) {
  constexpr std::string_view kTopK = "num_experts_per_tok";
  c.mixture.experts = fields.integer("num_local_experts", 16, kMaxExperts);
  c.mixture.top_k = fields.integer(kTopK, 2, kMaxExperts);
  c.mixture.intermediate = c.intermediate;
  c.mixture.run = read_experts_run(fields);
  if (c.mixture.top_k != 2) {
    fields.reject(kTopK, fmt::format("{}, but the model's mixer always chooses 2; set it to 2", c.mixture.top_k));
  }
  read_router_loss(fields, c.mixture);
  // router_jitter_noise is only a threshold here.
  c.mixture.jitters = fields.number("input_jitter_noise", 0) > 0;
  check_mixture(fields, c.mixture, kTopK);
}

}  // namespace

Expected<Architecture> build_phimoe(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c =
      read_decoder(fields, {.vocab = 32064, .intermediate = 6400, .kv_heads = 8, .max_positions = 4096 * 32});
  c.attention_dropout = fields.probability("attention_dropout", 0);
  read_attention_bias(fields, c);
  if (fields.has("sliding_window")) c.window = fields.integer("sliding_window", 1, kMaxPositions);
  slide_everywhere(c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  c.rotary.recomputed = true;
  const bool head_bias = fields.boolean("lm_head_bias", false);
  read_mixture(fields, c);
  return finish(fields, std::move(c)).map([head_bias](const DecoderConfig& read) {
    Architecture arch = decoder(read, "phimoe", NormKind::layer, kind);
    if (head_bias) {
      ParameterList p(arch.parameters, false);
      arch.head.bias = p.add("lm_head.bias", {axis(Axis::vocab, read.vocab)});
    }
    return arch;
  });
}

Output forward_phimoe(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(
      m, arch, std::move(batch),
      [](Modules& modules, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
        return pre_norm_layer(modules, layer, llama_attention, block, std::move(hidden), rotary, std::move(mask));
      });
}

}  // namespace ullage::model
