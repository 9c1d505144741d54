// Which models LitGPT has, and how it names what adapters change (litgpt/model.py, litgpt/lora.py).
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "engines/pytorch/litgpt.h"
#include "model/config_fields.h"

namespace ullage::engines::pytorch {
namespace {

using model::Architecture;
using model::Axis;
using model::axis;
using model::Dimension;
using model::LayerKind;
using model::Linear;

tl::unexpected<Error> no_such_model(const Architecture& from, std::string_view what) {
  return fail(ErrorCode::unsupported, "--modules",
              fmt::format("litgpt has no {} with {}; leave --modules at transformers", from.family, what));
}

// What LitGPT's one class cannot be.
std::string_view misfit(const Architecture& from, const LayerKind& kind) {
  const model::Attention& a = kind.attention;
  if (from.encoder_layers > 0 || from.head_transform.dense.weight || !a.causal) return "an encoder";
  if (kind.mixture.experts.count > 0) return "a mixture of experts";
  if (a.latent.kv_rank > 0 || a.kind == model::AttentionKind::none) return "this attention";
  if (a.sinks || a.biases.weight || a.clips || a.clipped || from.alibi) return "this attention";
  if (a.q_norm.weight || a.softcaps) return "this attention";
  if (from.input != model::InputKind::tokens) return "such inputs";
  if (from.bounded_positions || from.rotary.form == model::RotaryForm::neighbours) return "these positions";
  if (from.positions.weight || from.rotary.dim == 0 || !a.rotates) return "these positions";
  if (kind.norm_after || kind.feedforward_norm.weight || kind.residual_after_norm) return "norms behind its branches";
  if (from.project_in.weight || from.embedding_norm.weight) return "this embedding";
  const auto rms = [](const model::Norm& n) {
    return n.kind == model::NormKind::rms || n.kind == model::NormKind::rms_one_plus;
  };
  if (!rms(kind.input_norm) && kind.input_norm.kind != model::NormKind::layer) return "these norms";
  return {};
}

bool has_bias(const Linear& linear) { return static_cast<bool>(linear.bias); }

std::int64_t ffn_of(const LayerKind& kind) {
  const Linear& up = kind.mlp.up;
  const Dimension& rows = kind.parameters[static_cast<std::size_t>(up.weight.index)].dims[0];
  return rows.parts[0].count * rows.parts[0].unit;  // of a fused gate and up: the gate's
}

constexpr std::int64_t kPromptLength = 10;       // adapter_prompt_length
constexpr std::int64_t kFirstPromptedLayer = 2;  // adapter_start_layer

// Products and norms, and what LLaMA-Adapter adds to them.
class Builder {
 public:
  Builder(std::vector<model::Parameter>& list, bool in_layer, std::int64_t adapter)
      : list_(list), p_(list, in_layer), adapter_(adapter) {}

  Linear linear(const std::string& name, const Dimension& in, const Dimension& out, bool bias) {
    if (adapter_ == 2) {
      p_.add(name + ".adapter_bias", {out});
      p_.add(name + ".adapter_scale", {out});
    }
    const std::size_t before = list_.size();
    const Linear made = p_.linear(name, in, out, bias);
    freeze(before, adapter_ > 0);
    return made;
  }

  model::Norm norm(model::NormKind kind, const std::string& name, const Dimension& size) {
    const std::size_t before = list_.size();
    const model::Norm made = p_.norm(kind, name, size);
    freeze(before, adapter_ == 1);
    return made;
  }

  model::Embedding embedding(const std::string& name, const Dimension& rows, const Dimension& size) {
    const std::size_t before = list_.size();
    const model::Embedding made = p_.embedding(name, rows, size);
    freeze(before, adapter_ > 0);
    return made;
  }

  model::ParameterList& parameters() { return p_; }

 private:
  void freeze(std::size_t from, bool frozen) {
    for (std::size_t i = from; i < list_.size(); ++i) list_[i].frozen = frozen;
  }

  std::vector<model::Parameter>& list_;
  model::ParameterList p_;
  std::int64_t adapter_;
};

LayerKind convert_layer(const Architecture& from, const LayerKind& kind, std::int64_t adapter, bool prompted) {
  LayerKind out;
  out.name = kind.name;
  out.parallel = kind.parallel;
  Builder p(out.parameters, true, adapter);
  const Dimension hidden = axis(Axis::hidden, from.hidden);
  const model::Attention& a = kind.attention;
  const model::AxisPart query{Axis::heads, a.heads, a.head_dim};
  const model::AxisPart key{Axis::kv_heads, a.kv_heads, a.head_dim};
  out.input_norm = p.norm(kind.input_norm.kind, "norm_1", hidden);
  out.attention.heads = a.heads;
  out.attention.kv_heads = a.kv_heads;
  out.attention.head_dim = a.head_dim;
  if (prompted)
    p.parameters().add("attn.gating_factor",
                       {axis(Axis::heads, 1), axis(Axis::heads, 1), axis(Axis::heads, a.heads), axis(Axis::heads, 1)});
  out.attention.qkv = p.linear("attn.qkv", hidden, {{query, key, key}}, has_bias(a.qkv.weight ? a.qkv : a.q));
  out.attention.o = p.linear("attn.proj", {{query}}, hidden, has_bias(a.o));
  if (prompted) p.parameters().embedding("attn.adapter_wte", axis(Axis::position, kPromptLength), hidden);
  const model::Norm& second = kind.post_attention_norm;
  if (second.weight) out.post_attention_norm = p.norm(second.kind, "norm_2", hidden);
  const Dimension ffn = axis(Axis::ffn, ffn_of(kind));
  out.mlp.gated = kind.mlp.gated;
  out.mlp.activation =
      kind.mlp.activation == model::Activation::gelu_new ? model::Activation::gelu_tanh : kind.mlp.activation;
  if (out.mlp.gated) {
    out.mlp.gate = p.linear("mlp.fc_1", hidden, ffn, has_bias(kind.mlp.up));
    out.mlp.up = p.linear("mlp.fc_2", hidden, ffn, has_bias(kind.mlp.up));
  } else {
    out.mlp.up = p.linear("mlp.fc", hidden, ffn, has_bias(kind.mlp.up));
  }
  out.mlp.down = p.linear("mlp.proj", ffn, hidden, has_bias(kind.mlp.down));
  return out;
}

// LitGPT's switches, and the names that families have for the same modules.
struct Switch {
  std::string_view name;
  std::uint8_t parts;  // of the fused projection
  std::string_view module;
};

constexpr std::uint8_t kAll = model::kQueryPart | model::kKeyPart | model::kValuePart;
constexpr Switch kSwitches[] = {
    {"query", model::kQueryPart, "attn.qkv"},
    {"q_proj", model::kQueryPart, "attn.qkv"},
    {"key", model::kKeyPart, "attn.qkv"},
    {"k_proj", model::kKeyPart, "attn.qkv"},
    {"value", model::kValuePart, "attn.qkv"},
    {"v_proj", model::kValuePart, "attn.qkv"},
    {"qkv_proj", kAll, "attn.qkv"},
    {"query_key_value", kAll, "attn.qkv"},
    {"projection", 0, "attn.proj"},
    {"o_proj", 0, "attn.proj"},
    {"dense", 0, "attn.proj"},
    {"mlp", 0, "mlp"},
    {"gate_proj", 0, "mlp"},
    {"up_proj", 0, "mlp"},
    {"gate_up_proj", 0, "mlp"},
    {"down_proj", 0, "mlp"},
    {"fc1", 0, "mlp"},
    {"fc2", 0, "mlp"},
    {"dense_h_to_4h", 0, "mlp"},
    {"dense_4h_to_h", 0, "mlp"},
    {"head", 0, "lm_head"},
    {"lm_head", 0, "lm_head"},
    {"embed_out", 0, "lm_head"},
};

void add_once(std::vector<std::string>& list, std::string_view name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.emplace_back(name);
}

// One switch turns on all products of the feed-forward.
void add_module(std::vector<std::string>& targets, const Architecture& converted, std::string_view module) {
  if (module != "mlp") return add_once(targets, module);
  const bool gated = converted.kinds[0].mlp.gated;
  for (const std::string_view name : {gated ? "mlp.fc_1" : "mlp.fc", gated ? "mlp.fc_2" : "mlp.fc", "mlp.proj"})
    add_once(targets, name);
}

// From a certain layer on each has a prompt.
void add_prompts(Architecture& out, const Architecture& from, std::int64_t adapter) {
  const std::size_t plain = out.kinds.size();
  for (const LayerKind& kind : from.kinds) out.kinds.push_back(convert_layer(from, kind, adapter, true));
  for (std::size_t i = kFirstPromptedLayer; i < out.layers.size(); ++i)
    out.layers[i] = static_cast<std::uint8_t>(out.layers[i] + plain);
}

}  // namespace

model::ParameterRef find_parameter(const LayerKind& kind, std::string_view name) {
  for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
    if (kind.parameters[i].name == name) return {static_cast<std::int32_t>(i), true};
  }
  return {};
}

Expected<Architecture> litgpt_architecture(const Architecture& from, const TrainOptions& options) {
  if (!from.image.arch.empty()) return no_such_model(from, "images");
  for (const LayerKind& kind : from.kinds) {
    if (const std::string_view what = misfit(from, kind); !what.empty()) return no_such_model(from, what);
  }
  Architecture out = outline_of(from, "transformer.h.");
  const Dimension vocab = axis(Axis::vocab, from.vocab);
  const Dimension hidden = axis(Axis::hidden, from.hidden);
  Builder p(out.parameters, false, options.llama_adapter);
  out.head = p.linear("lm_head", hidden, vocab, has_bias(from.head));
  out.embedding = p.embedding("transformer.wte", vocab, hidden);
  out.layers_at = out.parameters.size();
  out.layers = from.layers;
  for (const LayerKind& kind : from.kinds) out.kinds.push_back(convert_layer(from, kind, options.llama_adapter, false));
  if (options.llama_adapter > 0) add_prompts(out, from, options.llama_adapter);
  out.final_norm = p.norm(from.final_norm.kind, "transformer.ln_f", hidden);
  out.multiplies_embeddings = from.multiplies_embeddings || from.embedding.scale >= 0;
  out.rotary = from.rotary;
  for (const char* name : {"cos", "sin"})
    out.buffers.push_back({name, {options.seq_len, from.rotary.dim}, DType::f32, false, false});
  return out;
}

Expected<model::Tuning> litgpt_tuning(const Architecture& converted, const model::Tuning& given, std::int64_t adapter) {
  model::Tuning out = given;
  out.head_too = true;
  out.marked = adapter > 0;
  if (given.tuner == model::Tuner::none) return out;
  if (given.tuner != model::Tuner::lora || !given.saved.empty())
    return fail(ErrorCode::unsupported, given.saved.empty() ? "--tuner" : "--modules-to-save",
                "belongs to PEFT, not to litgpt");
  const std::vector<std::string> usual{"query", "value"};
  out.targets.clear();
  for (const std::string& name : given.targets.empty() ? usual : given.targets) {
    const auto* found =
        std::find_if(std::begin(kSwitches), std::end(kSwitches), [&](const Switch& s) { return s.name == name; });
    if (found == std::end(kSwitches)) {
      return fail(ErrorCode::invalid_argument, "--lora-targets",
                  fmt::format("'{}' is none of litgpt's query, key, value, projection, mlp, head, nor a family's name "
                              "for one of them",
                              name.substr(0, 60)));
    }
    out.parts |= found->parts;
    add_module(out.targets, converted, found->module);
  }
  return out;
}

void add_row_indices(Architecture& converted, const model::Tuning& tuning) {
  if (tuning.parts == 0 || tuning.parts == kAll) return;
  for (LayerKind& kind : converted.kinds) {
    const model::Attention& a = kind.attention;
    const std::int64_t heads = (tuning.parts & model::kQueryPart) != 0 ? a.heads : 0;
    const std::int64_t keys = (tuning.parts & model::kKeyPart) != 0 ? a.kv_heads : 0;
    const std::int64_t values = (tuning.parts & model::kValuePart) != 0 ? a.kv_heads : 0;
    kind.buffers.push_back({"attn.qkv._lora_ind", {(heads + keys + values) * a.head_dim}, DType::i64, false, false});
  }
}

}  // namespace ullage::engines::pytorch
