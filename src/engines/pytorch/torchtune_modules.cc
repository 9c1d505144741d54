// torchtune's norms, adapters and models (torchtune/modules/{rms_norm,peft/lora}.py, torchtune/models/llama3_2/).
#include <fmt/core.h>

#include <algorithm>

#include "engines/pytorch/plain_decoder.h"
#include "engines/pytorch/torchtune.h"
#include "model/config_fields.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::Architecture;
using model::Axis;
using model::axis;
using model::call;
using model::Dimension;
using t::Tensor;

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

// linear_nf4, where the weight is quantised.
Tensor TorchtuneModules::base_product(const model::Linear& module, Tensor x) {
  const Quantised* quantised = state().quantised(module.weight, context().layer);
  if (quantised == nullptr) return plain_linear(module, std::move(x));
  const t::Scope named(context(), scope(module.weight));
  Tensor out = t::linear_nf4(std::move(x), quantised->nf4, options().compile);
  if (module.bias && !options().compile) out = t::add(out, parameter(module.bias));
  return out;
}

// LoRALinear.forward.
Tensor TorchtuneModules::linear(const model::Linear& module, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const Adapter* adapter = state().adapter(module.weight, context().layer);
  const Tensor out = base_product(module, x);
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

constexpr LayerNames kLayerNames{"attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.output_proj", "mlp.w1",
                                 "mlp.w2",      "mlp.w3",      "sa_norm",     "mlp_norm"};

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
  if (!is_plain_decoder(from)) {
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
  out.kinds.push_back(renamed_layer(from, kLayerNames));
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
  if (given.base == model::BaseFormat::nf4_dq) out.base = model::BaseFormat::nf4_torchao;
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
