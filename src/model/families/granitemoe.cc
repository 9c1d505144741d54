// Granite's mixture of experts (transformers: models/granitemoe/modeling_granitemoe.py). Its experts run one after the
// other, each on the rows that it was given.
#include "model/families/granitemoe.h"

#include "model/families/moe.h"

namespace ullage::model {
namespace {

// Tokens are taken to spread evenly; what remains goes to the first experts.
std::vector<std::int64_t> even_shares(std::int64_t rows, std::int64_t experts) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < experts; ++i) out.push_back(rows / experts + (i < rows % experts ? 1 : 0));
  return out;
}

// The routed rows in the order of their experts.
struct Sorted {
  Tensor logits;
  Tensor rows;   // the token of each, [tokens x top_k]
  Tensor gates;  // its weight
  std::vector<std::int64_t> shares;
};

Sorted route(Modules& m, const Mixture& mixture, Tensor hidden) {
  tensor::Context& context = m.context();
  const std::int64_t tokens = hidden.size(0);
  const std::int64_t experts = mixture.experts.count;
  const std::int64_t pairs = tokens * mixture.top_k;
  Sorted out;
  out.logits = call([&](Tensor x) { return m.linear(mixture.router, x); }, hidden);
  out.logits = tensor::to(std::move(out.logits), DType::f32);
  const tensor::Ranked top = tensor::topk(out.logits, mixture.top_k);
  Tensor gates = tensor::softmax(top.values);
  gates = tensor::to(std::move(gates), hidden.dtype());
  const Tensor zeros = tensor::empty(context, tensor::Op::zeros, {tokens, experts}, gates.dtype());
  const Tensor hits = tensor::empty(context, tensor::Op::scatter, {tokens, experts}, gates.dtype());
  {
    const Tensor counted = tensor::empty(context, tensor::Op::cast, {tokens, experts}, DType::i64);
    const Tensor sums = tensor::empty(context, tensor::Op::sum, {experts}, DType::i64);
  }
  out.shares = even_shares(pairs, experts);
  const Tensor flat = tensor::view(top.indices, {-1});
  const tensor::Ranked sorted = tensor::sort(flat);
  out.rows = tensor::empty(context, tensor::Op::floor_divide, {pairs}, DType::i64);
  gates = tensor::view(std::move(gates), {-1});
  out.gates = tensor::index_rows(gates, sorted.indices);
  return out;
}

Tensor run_on_shares(Modules& m, ParameterRef weight, const Tensor& rows, const Sorted& routing) {
  return call([&](Tensor x) { return m.linear_by_shares(weight, x, routing.shares); }, rows);
}

Tensor block(Modules& m, const LayerKind& layer, Tensor hidden) {
  const tensor::Dims sizes = hidden.sizes();
  const Experts& experts = layer.mixture.experts;
  const Tensor tokens = tokens_of(hidden);
  const Sorted routing = call([&](Tensor x) { return route(m, layer.mixture, x); }, tokens);
  const Tensor rows = tensor::index_rows(tokens, routing.rows);
  Tensor x = run_on_shares(m, experts.gate_up, rows, routing);
  const std::vector<Tensor> halves = tensor::split(x, x.size(-1) / 2, -1);
  {
    Tensor active = call([&](Tensor h) { return m.activation(experts.activation, h); }, halves[0]);
    x = tensor::mul(std::move(active), halves[1]);
  }
  Tensor out = run_on_shares(m, experts.down, x, routing);
  out = tensor::mul(out, tensor::unsqueeze(routing.gates, -1));
  const Tensor zeros = tensor::empty(m.context(), tensor::Op::zeros, tokens.sizes(), out.dtype());
  const Tensor summed = tensor::index_add(out, routing.rows, tokens.size(0));
  return tensor::view(summed, sizes);
}

Tensor decoder_layer(Modules& m, const LayerKind& layer, Tensor hidden, const RotaryTables& rotary, Tensor mask) {
  Tensor residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.input_norm, x); }, hidden);
  AttentionOutput attended =
      call([&](Tensor x) { return llama_attention(m, layer.attention, x, rotary, mask); }, hidden);
  hidden = std::move(attended.output);
  Tensor scaled = tensor::mul_scalar(hidden);
  hidden = tensor::add(residual, std::move(scaled));
  residual = hidden;
  hidden = call([&](Tensor x) { return m.norm(layer.post_attention_norm, x); }, hidden);
  hidden = call([&](Tensor x) { return block(m, layer, x); }, hidden);
  scaled = tensor::mul_scalar(hidden);
  hidden = tensor::add(residual, std::move(scaled));
  return hidden;
}

LayerKind kind(const DecoderConfig& c, const LayerTraits& traits) {
  LayerKind layer = empty_layer(c, traits);
  ParameterList p(layer.parameters, true);
  add_projections(p, layer, c);
  add_norms(p, layer, c, NormKind::rms);
  layer.mixture = empty_mixture(c);
  Experts& experts = layer.mixture.experts;
  const Dimension count = axis(Axis::expert, c.mixture.experts);
  const Dimension ffn = axis(Axis::ffn, c.mixture.intermediate);
  experts.gate_up =
      p.add("block_sparse_moe.input_linear.weight", {count, Dimension{{ffn.parts[0], ffn.parts[0]}}, hidden_axis(c)});
  experts.down = p.add("block_sparse_moe.output_linear.weight", {count, hidden_axis(c), ffn});
  layer.mixture.router = add_router(p, "block_sparse_moe.router.layer", c);
  return layer;
}

Expected<DecoderConfig> read(const JsonObject& config) {
  Fields fields(config);
  DecoderConfig c = read_decoder(fields, {});
  c.attention_dropout = fields.optional_probability("attention_dropout", 0);
  read_attention_bias(fields, c);
  c.rotary = read_rotary(fields, c.head_dim, c.max_positions);
  c.mixture.experts = fields.optional_integer("num_local_experts", 8, kMaxExperts);
  c.mixture.top_k = fields.optional_integer("num_experts_per_tok", 2, kMaxExperts);
  c.mixture.intermediate = c.intermediate;
  c.mixture.run = ExpertsRun::one_by_one;
  refuse_router_loss(fields, "transformers' class hands its routers' logits to nobody, and fails without them");
  check_mixture(fields, c.mixture, "num_experts_per_tok");
  return finish(fields, std::move(c));
}

}  // namespace

Expected<Architecture> build_granitemoe(const JsonObject& config) {
  return read(config).map([](const DecoderConfig& c) {
    Architecture arch = decoder(c, "granitemoe", NormKind::rms, kind);
    arch.multiplies_embeddings = true;
    arch.multiplies_behind_masks = true;
    arch.logits = LogitForm::divided;
    return arch;
  });
}

Output forward_granitemoe(Modules& m, const Architecture& arch, Batch batch) {
  return forward_decoder(m, arch, std::move(batch), decoder_layer);
}

}  // namespace ullage::model
