#include "model/gguf_tensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace ullage::model {
namespace {

using Shape = std::vector<std::int64_t>;

Shape shape_of(const Parameter& parameter) {
  Shape out;
  for (const Dimension& dim : parameter.dims) out.push_back(dim.size());
  return out;
}

// What a parameter of a layer is called and what becomes of it.
struct Place {
  std::string name;
  GgufRole role = GgufRole::other;
};

class LayerNames {
 public:
  explicit LayerNames(const LayerKind& kind) {
    add_attention(kind.attention);
    add_mlp(kind.mlp, "");
    add_mlp(kind.mixture.shared, "_shexp");
    add(kind.mixture.router.weight, "ffn_gate_inp", GgufRole::full);
    add(kind.mixture.shared_gate.weight, "ffn_gate_inp_shexp", GgufRole::full);
    add(kind.input_norm, "attn_norm");
    add(kind.post_attention_norm, kind.feedforward_norm.weight ? "post_attention_norm" : "ffn_norm");
    add(kind.feedforward_norm, "ffn_norm");
    add(kind.post_feedforward_norm, "post_ffw_norm");
  }

  const Place* find(std::int32_t index) const {
    const auto at = places_.find(index);
    return at == places_.end() ? nullptr : &at->second;
  }

 private:
  void add(ParameterRef ref, std::string name, GgufRole role) {
    // What is said first holds: a norm may serve two parts.
    if (ref && ref.in_layer) places_.try_emplace(ref.index, Place{std::move(name), role});
  }

  void add(const Linear& linear, const std::string& name, GgufRole role) {
    add(linear.weight, name, role);
    add(linear.bias, name, GgufRole::full);
  }

  void add(const Norm& norm, const std::string& name) {
    add(norm.weight, name, GgufRole::full);
    add(norm.bias, name, GgufRole::full);
  }

  void add_attention(const Attention& a) {
    add(a.q, "attn_q", GgufRole::attn_q);
    add(a.k, "attn_k", GgufRole::attn_k);
    add(a.v, "attn_v", GgufRole::attn_v);
    add(a.qkv, "attn_qkv", GgufRole::attn_qkv);
    add(a.o, "attn_output", GgufRole::attn_output);
    add(a.q_norm, "attn_q_norm");
    add(a.k_norm, "attn_k_norm");
    add(a.latent.q_down, "attn_q_a", GgufRole::other);
    add(a.latent.q_norm, "attn_q_a_norm");
    add(a.latent.q_up, "attn_q_b", GgufRole::other);
    add(a.latent.kv_down, "attn_kv_a_mqa", GgufRole::other);
    add(a.latent.kv_norm, "attn_kv_a_norm");
  }

  void add_mlp(const Mlp& mlp, const std::string& ending) {
    add(mlp.gate, "ffn_gate" + ending, GgufRole::ffn_gate);
    add(mlp.up, "ffn_up" + ending, GgufRole::ffn_up);
    add(mlp.down, "ffn_down" + ending, GgufRole::ffn_down);
  }

  std::map<std::int32_t, Place> places_;
};

class Writer {
 public:
  explicit Writer(const Architecture& architecture) : arch_(architecture) {}

  std::vector<MixTensor> take() {
    for (std::size_t i = 0; i < arch_.parameters.size(); ++i) add_outer(i);
    add_frequencies();
    for (std::int64_t layer = arch_.encoder_layers; layer < arch_.layer_count(); ++layer) add_layer(layer);
    std::stable_sort(out_.begin(), out_.end(), [](const MixTensor& a, const MixTensor& b) {
      return a.layer != b.layer ? a.layer < b.layer : a.name < b.name;
    });
    return std::move(out_);
  }

 private:
  // By what the rotary embedding's frequencies are divided.
  void add_frequencies() {
    const Shape half{arch_.rotary.dim / 2};
    if (arch_.rotary.type == "llama3") push("rope_freqs.weight", half, GgufRole::full, -1);
    if (arch_.rotary.type != "longrope") return;
    push("rope_factors_long.weight", half, GgufRole::full, -1);
    push("rope_factors_short.weight", half, GgufRole::full, -1);
  }

  // Of what stands outside of layers the text model's alone: the embedding, norms, the head and what begins as they do.
  void add_outer(std::size_t index) {
    const Parameter& parameter = arch_.parameters[index];
    if (parameter.tied_to) return;
    const auto is = [&](ParameterRef ref) { return ref && !ref.in_layer && ref.index == static_cast<int>(index); };
    if (is(arch_.embedding.weight)) return push("token_embd.weight", parameter, GgufRole::embedding, -1);
    if (is(arch_.head.weight)) return push("output.weight", parameter, GgufRole::output, -1);
    if (is(arch_.head.bias)) return push("output.bias", parameter, GgufRole::full, -1);
    if (is(arch_.final_norm.weight)) return push("output_norm.weight", parameter, GgufRole::full, -1);
    if (is(arch_.final_norm.bias)) return push("output_norm.bias", parameter, GgufRole::full, -1);
    if (is(arch_.positions.weight)) return push("position_embd.weight", parameter, GgufRole::full, -1);
    if (is(arch_.token_types.weight)) return push("token_types.weight", parameter, GgufRole::full, -1);
    const std::string& text = arch_.layer_prefix;
    const std::string_view prefix = std::string_view(text).substr(0, text.find("layers"));
    if (parameter.name.starts_with(prefix) && !prefix.empty() && prefix != "model.")
      push(parameter.name, parameter, role_of(parameter), -1);
  }

  static GgufRole role_of(const Parameter& parameter) {
    return parameter.module == ModuleKind::linear || parameter.module == ModuleKind::embedding ? GgufRole::other
                                                                                               : GgufRole::full;
  }

  void add_layer(std::int64_t layer) {
    const LayerKind& kind = arch_.kind_of(layer);
    const LayerNames names(kind);
    const auto number = static_cast<std::int32_t>(layer - arch_.encoder_layers);
    const std::string at = fmt::format("blk.{}.", number);
    for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      const Parameter& parameter = kind.parameters[i];
      if (is_expert(kind, index)) add_expert(kind, index, at, number);
      else if (is(kind.attention.latent.kv_up.weight, index)) add_latent_up(kind, at, number);
      else if (const Place* place = names.find(index); place != nullptr) {
        const std::string_view ending = parameter.name.ends_with(".bias") ? ".bias" : ".weight";
        push(fmt::format("{}{}{}", at, place->name, ending), parameter, place->role, number, transposed(kind, index));
      } else push(at + parameter.name, parameter, role_of(parameter), number);
    }
  }

  static bool is(ParameterRef ref, std::int32_t index) { return ref && ref.in_layer && ref.index == index; }

  static bool is_expert(const LayerKind& kind, std::int32_t index) {
    const Experts& e = kind.mixture.experts;
    return is(e.gate_up, index) || is(e.down, index);
  }

  // GPT-2's layers store [in, out]; the converter turns them.
  static bool transposed(const LayerKind& kind, std::int32_t index) {
    return kind.parameters[static_cast<std::size_t>(index)].module == ModuleKind::conv1d;
  }

  void add_expert(const LayerKind& kind, std::int32_t index, const std::string& at, std::int32_t layer) {
    const Experts& e = kind.mixture.experts;
    const Parameter& parameter = kind.parameters[static_cast<std::size_t>(index)];
    Shape shape = shape_of(parameter);
    if (shape.size() != 3) return push(at + parameter.name, parameter, GgufRole::other, layer);
    if (e.stored_in_out) std::swap(shape[1], shape[2]);
    if (is(e.down, index)) return push(at + "ffn_down_exps.weight", shape, GgufRole::ffn_down, layer);
    const std::size_t rows = e.stored_in_out ? 2 : 1;
    if (parameter.dims[rows].parts.size() < 2) return push(at + "ffn_up_exps.weight", shape, GgufRole::ffn_up, layer);
    shape[1] /= 2;
    push(at + "ffn_gate_exps.weight", shape, GgufRole::ffn_gate, layer);
    push(at + "ffn_up_exps.weight", shape, GgufRole::ffn_up, layer);
  }

  // The way up from the latent vector comes apart into keys', turned over, and values' (convert_hf_to_gguf.py).
  void add_latent_up(const LayerKind& kind, const std::string& at, std::int32_t layer) {
    const Attention& a = kind.attention;
    push(at + "attn_k_b.weight", Shape{a.heads, a.latent.kv_rank, a.latent.nope_dim}, GgufRole::other, layer);
    push(at + "attn_v_b.weight", Shape{a.heads, a.latent.value_dim, a.latent.kv_rank}, GgufRole::other, layer);
  }

  void push(std::string name, const Parameter& parameter, GgufRole role, std::int32_t layer, bool turned = false) {
    Shape shape = shape_of(parameter);
    if (turned && shape.size() == 2) std::swap(shape[0], shape[1]);
    push(std::move(name), std::move(shape), role, layer);
  }

  void push(std::string name, Shape shape, GgufRole role, std::int32_t layer) {
    MixTensor& tensor = out_.emplace_back();
    tensor.name = std::move(name);
    tensor.role = shape.size() < 2 ? GgufRole::full : role;
    tensor.shape = std::move(shape);
    tensor.layer = layer;
  }

  const Architecture& arch_;
  std::vector<MixTensor> out_;
};

}  // namespace

std::vector<MixTensor> untyped_gguf_tensors(const Architecture& architecture) { return Writer(architecture).take(); }

}  // namespace ullage::model
