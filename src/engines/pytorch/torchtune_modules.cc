// torchtune's norms, adapters and models (torchtune/modules/{rms_norm,peft/lora}.py, torchtune/models/llama3_2/).
#include <fmt/core.h>

#include <algorithm>

#include "engines/pytorch/torchtune.h"
#include "model/config_fields.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::Architecture;
using model::Axis;
using model::axis;
using model::call;
using model::Dimension;
using model::LayerKind;
using t::Tensor;

Tensor TorchtuneModules::embedding(const model::Embedding& module, Tensor ids) {
  const t::Scope named(context(), scope(module.weight));
  return t::embedding(parameter(module.weight), std::move(ids));
}

// RMSNorm.forward.
Tensor TorchtuneModules::norm(const model::Norm& module, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const t::Scope named(context(), scope(module.weight));
  const Tensor wide = t::to(x, DType::f32);
  Tensor squares = t::pow_scalar(wide);
  Tensor inverse = t::mean_last(std::move(squares));
  inverse = t::add_scalar(std::move(inverse));
  inverse = t::rsqrt(std::move(inverse));
  Tensor scaled = t::mul(wide, std::move(inverse));
  const Tensor normed = t::to(std::move(scaled), x.dtype());
  return t::mul(normed, parameter(module.weight));
}

// LoRALinear.forward.
Tensor TorchtuneModules::linear(const model::Linear& module, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const Adapter* adapter = state().adapter(module.weight, context().layer);
  const Tensor out = plain_linear(module, x);
  if (adapter == nullptr) return out;
  const auto factor = [&](const Tensor& weight, NameId name, Tensor h) {
    const t::Scope named(context(), name);
    return call([&](Tensor input) { return t::linear(std::move(input), weight, {}); }, std::move(h));
  };
  Tensor dropped = call([&](Tensor h) { return t::dropout(std::move(h), options().lora_dropout); }, x);
  Tensor update = factor(adapter->a, adapter->a_module, std::move(dropped));
  {
    Tensor high = factor(adapter->b, adapter->b_module, update);
    update = t::mul_scalar(std::move(high));
  }
  return t::add(out, update);
}

namespace {

bool fits(const Architecture& from) {
  if (from.input != model::InputKind::tokens || from.encoder_layers > 0 || from.kinds.size() != 1) return false;
  const LayerKind& kind = from.kinds[0];
  const model::Attention& a = kind.attention;
  const bool plain_attention = a.q.weight && !a.q_norm.weight && !a.sinks && !a.window && !a.softcaps && a.rotates;
  const bool rms = kind.input_norm.kind == model::NormKind::rms && from.final_norm.kind == model::NormKind::rms;
  const bool no_bias = !a.o.bias && !kind.mlp.up.bias;
  const bool gated = no_bias && kind.mlp.gated && kind.mlp.gate.weight && kind.mixture.experts.count == 0;
  return plain_attention && rms && gated && !kind.parallel && kind.post_attention_norm.weight && !kind.norm_after &&
         !kind.feedforward_norm.weight && from.rotary.dim == a.head_dim && !from.positions.weight &&
         from.logits == model::LogitForm::plain && !from.multiplies_embeddings && from.embedding.scale < 0;
}

LayerKind convert_layer(const Architecture& from) {
  const LayerKind& kind = from.kinds[0];
  LayerKind out;
  out.name = kind.name;
  model::ParameterList p(out.parameters, true);
  const model::Attention& a = kind.attention;
  const Dimension hidden = axis(Axis::hidden, from.hidden);
  const Dimension heads = axis(Axis::heads, a.heads, a.head_dim);
  const Dimension keys = axis(Axis::kv_heads, a.kv_heads, a.head_dim);
  const Dimension ffn = kind.parameters[static_cast<std::size_t>(kind.mlp.up.weight.index)].dims[0];
  const bool bias = static_cast<bool>(a.q.bias);
  out.attention.heads = a.heads;
  out.attention.kv_heads = a.kv_heads;
  out.attention.head_dim = a.head_dim;
  out.attention.q = p.linear("attn.q_proj", hidden, heads, bias);
  out.attention.k = p.linear("attn.k_proj", hidden, keys, bias);
  out.attention.v = p.linear("attn.v_proj", hidden, keys, bias);
  out.attention.o = p.linear("attn.output_proj", heads, hidden, false);
  out.mlp.activation = kind.mlp.activation;
  out.mlp.gate = p.linear("mlp.w1", hidden, ffn, false);
  out.mlp.down = p.linear("mlp.w2", ffn, hidden, false);
  out.mlp.up = p.linear("mlp.w3", hidden, ffn, false);
  out.input_norm = p.rms_norm("sa_norm", hidden);
  out.post_attention_norm = p.rms_norm("mlp_norm", hidden);
  return out;
}

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"q_proj", "attn.q_proj"},
    {"k_proj", "attn.k_proj"},
    {"v_proj", "attn.v_proj"},
    {"o_proj", "attn.output_proj"},
    {"output_proj", "attn.output_proj"},
    {"gate_proj", "mlp.w1"},
    {"down_proj", "mlp.w2"},
    {"up_proj", "mlp.w3"},
    {"w1", "mlp.w1"},
    {"w2", "mlp.w2"},
    {"w3", "mlp.w3"},
    {"lm_head", "output"},
};

}  // namespace

Expected<Architecture> torchtune_architecture(const Architecture& from, const TrainOptions& options) {
  if (!fits(from)) {
    return fail(ErrorCode::unsupported, "--modules",
                fmt::format("torchtune's decoder is no {}; leave --modules at transformers", from.family));
  }
  Architecture out = outline_of(from, "layers.");
  const Dimension vocab = axis(Axis::vocab, from.vocab);
  const Dimension hidden = axis(Axis::hidden, from.hidden);
  model::ParameterList p(out.parameters, false);
  out.embedding = p.embedding("tok_embeddings", vocab, hidden);
  out.layers_at = 1;
  out.layers = from.layers;
  out.kinds.push_back(convert_layer(from));
  out.final_norm = p.rms_norm("norm", hidden);
  const bool tied = from.parameters[static_cast<std::size_t>(from.head.weight.index)].tied_to.has_value();
  out.head = p.linear("output", hidden, vocab, false);
  if (tied) out.parameters.back().tied_to = out.embedding.weight.index;
  out.rotary = from.rotary;
  const std::int64_t half = from.rotary.dim / 2;
  out.buffers.push_back({"theta", {half}, DType::f32, false, false});
  out.buffers.push_back({"cache", {from.max_positions, half, 2}, DType::f32, false, false});
  out.buffers.push_back({"ignore_labels_cache", {options.micro_batch, 1}, DType::i64, false, false});  // the recipe's
  return out;
}

Expected<model::Tuning> torchtune_tuning(const model::Tuning& given) {
  model::Tuning out = given;
  if (given.tuner == model::Tuner::none) return out;
  const std::vector<std::string> usual{"q_proj", "v_proj", "output_proj", "w1", "w2", "w3"};
  out.targets.clear();
  for (const std::string& name : given.targets.empty() ? usual : given.targets) {
    const auto* found =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& n) { return n.first == name; });
    if (found == std::end(kNames)) {
      return fail(
          ErrorCode::invalid_argument, "--lora-targets",
          fmt::format("'{}' is none of torchtune's q_proj, k_proj, v_proj, output_proj, w1, w2, w3, output, nor "
                      "transformers' name for one of them",
                      name.substr(0, 60)));
    }
    out.targets.emplace_back(found->second);
  }
  return out;
}

}  // namespace ullage::engines::pytorch
