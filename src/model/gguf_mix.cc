#include "model/gguf_mix.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/lines.h"
#include "base/nearest.h"
#include "model/gguf_tensors.h"

namespace ullage::model {
namespace {

// Mixes of the same base type differ in which tensors get another.
enum class Mix : std::uint8_t {
  f32,
  f16,
  bf16,
  q1_0,
  q2_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  mxfp4_moe,
  q2_k,
  q2_k_s,
  q3_k_s,
  q3_k_m,
  q3_k_l,
  q4_k_s,
  q4_k_m,
  q5_k_s,
  q5_k_m,
  q6_k,
  tq1_0,
  tq2_0,
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq2_m,
  iq3_xxs,
  iq3_xs,
  iq3_s,
  iq3_m,
  iq4_nl,
  iq4_xs,
};

struct MixRow {
  std::string_view name;
  Mix mix;
  GgmlType base;
};

constexpr std::array kMixes{
    MixRow{"F32", Mix::f32, GgmlType::f32},
    MixRow{"F16", Mix::f16, GgmlType::f16},
    MixRow{"BF16", Mix::bf16, GgmlType::bf16},
    MixRow{"Q1_0", Mix::q1_0, GgmlType::q1_0},
    MixRow{"Q2_0", Mix::q2_0, GgmlType::q2_0},
    MixRow{"Q4_0", Mix::q4_0, GgmlType::q4_0},
    MixRow{"Q4_1", Mix::q4_1, GgmlType::q4_1},
    MixRow{"Q5_0", Mix::q5_0, GgmlType::q5_0},
    MixRow{"Q5_1", Mix::q5_1, GgmlType::q5_1},
    MixRow{"Q8_0", Mix::q8_0, GgmlType::q8_0},
    MixRow{"MXFP4_MOE", Mix::mxfp4_moe, GgmlType::mxfp4},
    MixRow{"Q2_K", Mix::q2_k, GgmlType::q2_k},
    MixRow{"Q2_K_S", Mix::q2_k_s, GgmlType::q2_k},
    MixRow{"Q3_K_S", Mix::q3_k_s, GgmlType::q3_k},
    MixRow{"Q3_K_M", Mix::q3_k_m, GgmlType::q3_k},
    MixRow{"Q3_K_L", Mix::q3_k_l, GgmlType::q3_k},
    MixRow{"Q4_K_S", Mix::q4_k_s, GgmlType::q4_k},
    MixRow{"Q4_K_M", Mix::q4_k_m, GgmlType::q4_k},
    MixRow{"Q5_K_S", Mix::q5_k_s, GgmlType::q5_k},
    MixRow{"Q5_K_M", Mix::q5_k_m, GgmlType::q5_k},
    MixRow{"Q6_K", Mix::q6_k, GgmlType::q6_k},
    MixRow{"TQ1_0", Mix::tq1_0, GgmlType::tq1_0},
    MixRow{"TQ2_0", Mix::tq2_0, GgmlType::tq2_0},
    MixRow{"IQ1_S", Mix::iq1_s, GgmlType::iq1_s},
    MixRow{"IQ1_M", Mix::iq1_m, GgmlType::iq1_m},
    MixRow{"IQ2_XXS", Mix::iq2_xxs, GgmlType::iq2_xxs},
    MixRow{"IQ2_XS", Mix::iq2_xs, GgmlType::iq2_xs},
    MixRow{"IQ2_S", Mix::iq2_s, GgmlType::iq2_xs},
    MixRow{"IQ2_M", Mix::iq2_m, GgmlType::iq2_s},
    MixRow{"IQ3_XXS", Mix::iq3_xxs, GgmlType::iq3_xxs},
    MixRow{"IQ3_XS", Mix::iq3_xs, GgmlType::iq3_s},
    MixRow{"IQ3_S", Mix::iq3_s, GgmlType::iq3_s},
    MixRow{"IQ3_M", Mix::iq3_m, GgmlType::iq3_s},
    MixRow{"IQ4_NL", Mix::iq4_nl, GgmlType::iq4_nl},
    MixRow{"IQ4_XS", Mix::iq4_xs, GgmlType::iq4_xs},
};

// Short for the mixes of middle size.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"Q3_K", "Q3_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q5_K", "Q5_K_M"}};

const MixRow* find_mix(std::string_view name) {
  for (const auto& [alias, meant] : kAliases) {
    if (compare_ignoring_case(name, alias) == 0) name = meant;
  }
  for (const MixRow& row : kMixes) {
    if (compare_ignoring_case(name, row.name) == 0) return &row;
  }
  return nullptr;
}

template <class... Others>
bool is_one_of(Mix mix, Others... others) {
  return ((mix == others) || ...);
}

// The first and the last eighth of the layers, and every third between.
bool more_bits(std::int64_t layer, std::int64_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

// What the rule asks of a model, and how many tensors of a role it has gone past.
class Rule {
 public:
  Rule(const Architecture& architecture, const std::vector<MixTensor>& tensors, const MixRow& row)
      : mix_(row.mix), base_(row.base), layers_(architecture.layer_count() - architecture.encoder_layers) {
    for (const LayerKind& kind : architecture.kinds) {
      const Attention& a = kind.attention;
      experts_ = std::max(experts_, kind.mixture.experts.count);
      if (a.kv_heads > 0) grouping_ = std::max(grouping_, a.heads / a.kv_heads);
    }
    const std::string_view family = architecture.family;
    falcon_ = family == "falcon" || family == "RefinedWeb" || family == "RefinedWebModel";
    seventy_ = layers_ == 80 && ((family == "llama" && grouping_ > 1) || family == "qwen2");
    for (const MixTensor& tensor : tensors) {
      if (tensor.role == GgufRole::output) has_output_ = true;
      if (tensor.role == GgufRole::attn_v || tensor.role == GgufRole::attn_qkv) ++values_;
    }
  }

  GgmlType type_of(const MixTensor& tensor) {
    if (tensor.role == GgufRole::full) return GgmlType::f32;
    if (!layout_of(base_).quantised()) return base_;
    const bool heads = tensor.role == GgufRole::output || (!has_output_ && tensor.role == GgufRole::embedding);
    GgmlType type = base_;
    if (heads) type = of_output(tensor);
    else if (mix_ == Mix::mxfp4_moe) type = tensor.shape.size() > 2 ? GgmlType::mxfp4 : GgmlType::q8_0;
    else if (tensor.role == GgufRole::embedding) type = of_embedding();
    else if (is_narrow()) type = of_narrow(tensor.role);
    else type = of_role(tensor);
    return fitting(type, tensor.shape.back());
  }

 private:
  bool is_narrow() const {
    return is_one_of(mix_, Mix::iq1_s, Mix::iq1_m, Mix::iq2_xxs, Mix::iq2_xs, Mix::iq2_s, Mix::iq2_m);
  }
  bool is_iq2_sm() const { return is_one_of(mix_, Mix::iq2_s, Mix::iq2_m); }

  GgmlType of_output(const MixTensor& tensor) const {
    if (mix_ == Mix::mxfp4_moe || falcon_ || tensor.shape.back() % layout_of(base_).block != 0) return GgmlType::q8_0;
    if (is_narrow() || mix_ == Mix::iq3_xxs) return GgmlType::q5_k;
    return base_ == GgmlType::q8_0 ? base_ : GgmlType::q6_k;
  }

  GgmlType of_embedding() const {
    if (is_one_of(mix_, Mix::iq2_xxs, Mix::iq2_xs, Mix::iq1_s, Mix::iq1_m)) return GgmlType::q2_k;
    if (is_one_of(mix_, Mix::iq2_s, Mix::iq2_m, Mix::iq3_xxs)) return GgmlType::iq3_s;
    if (is_one_of(mix_, Mix::tq1_0, Mix::tq2_0, Mix::q2_0)) return GgmlType::q4_k;
    return base_;
  }

  // Mixes of about two bits.
  GgmlType of_narrow(GgufRole role) {
    switch (role) {
      case GgufRole::attn_v:
      case GgufRole::attn_qkv:
        if (grouping_ >= 4 || experts_ >= 4) return GgmlType::q4_k;
        return is_iq2_sm() ? GgmlType::iq3_s : GgmlType::q2_k;
      case GgufRole::attn_k: return experts_ == 8 ? GgmlType::q4_k : base_;
      case GgufRole::ffn_down:
        if (seen_down_++ >= layers_ / 8) return base_;
        return is_iq2_sm() ? GgmlType::iq3_s : GgmlType::q2_k;
      case GgufRole::attn_output:
        if (experts_ == 8) return GgmlType::q5_k;
        if (is_one_of(mix_, Mix::iq1_s, Mix::iq1_m)) return GgmlType::iq2_xxs;
        return is_iq2_sm() ? GgmlType::iq3_s : base_;
      default: return base_;
    }
  }

  GgmlType of_role(const MixTensor& tensor) {
    switch (tensor.role) {
      case GgufRole::attn_v:
      case GgufRole::attn_qkv: return of_values();
      case GgufRole::attn_k:
        if (experts_ == 8) return GgmlType::q8_0;
        return of_queries();
      case GgufRole::attn_q: return of_queries();
      case GgufRole::ffn_down: return of_down(tensor);
      case GgufRole::attn_output: return of_attention_output();
      case GgufRole::ffn_gate: return of_gate(experts_ > 1 ? tensor.layer : seen_gate_++);
      case GgufRole::ffn_up: return of_gate(experts_ > 1 ? tensor.layer : seen_up_++);
      default: return base_;
    }
  }

  GgmlType of_values() {
    const std::int64_t seen = seen_values_++;
    GgmlType type = base_;
    const bool grouped = grouping_ >= 4;
    if (mix_ == Mix::q2_k) type = grouped ? GgmlType::q4_k : GgmlType::q3_k;
    else if (is_one_of(mix_, Mix::q2_k_s, Mix::iq3_xs, Mix::iq3_s) && grouped) type = GgmlType::q4_k;
    else if (mix_ == Mix::iq3_xxs) type = grouped ? GgmlType::q4_k : GgmlType::iq3_s;
    else if (mix_ == Mix::iq3_m) type = GgmlType::q4_k;
    else if (mix_ == Mix::q3_k_m) type = seen < 2 ? GgmlType::q5_k : GgmlType::q4_k;
    else if (mix_ == Mix::q3_k_l) type = GgmlType::q5_k;
    else if (is_one_of(mix_, Mix::iq4_nl, Mix::iq4_xs) && grouped) type = GgmlType::q5_k;
    else if (is_one_of(mix_, Mix::q4_k_m, Mix::q5_k_m) && more_bits(seen, values_)) type = GgmlType::q6_k;
    else if (mix_ == Mix::q4_k_s && seen < 4) type = GgmlType::q5_k;
    // Where eight heads share the values, more bits cost next to nothing.
    if (seventy_ && (type == GgmlType::q3_k || type == GgmlType::q4_k)) type = GgmlType::q5_k;
    return experts_ == 8 ? GgmlType::q8_0 : type;
  }

  GgmlType of_queries() const {
    if (mix_ == Mix::iq3_xs) return GgmlType::iq3_xxs;
    return mix_ == Mix::iq3_xxs ? GgmlType::iq2_s : base_;
  }

  GgmlType of_down(const MixTensor& tensor) {
    const std::int64_t counted = seen_down_++;
    const std::int64_t layer = experts_ > 1 ? tensor.layer : counted;
    const bool first = layer < layers_ / 8;
    const bool more = more_bits(layer, layers_);
    switch (mix_) {
      case Mix::q2_k: return GgmlType::q3_k;
      case Mix::q2_k_s: return first ? GgmlType::q4_k : base_;
      case Mix::iq3_xxs: return first ? GgmlType::q4_k : GgmlType::q3_k;
      case Mix::q3_k_m:
        if (layer < layers_ / 16) return GgmlType::q5_k;
        return !falcon_ || more ? GgmlType::q4_k : base_;
      case Mix::iq3_m: return first || (experts_ == 8 && more) ? GgmlType::q4_k : base_;
      case Mix::q3_k_l: return falcon_ ? GgmlType::q4_k : GgmlType::q5_k;
      case Mix::q4_k_m:
        if (!falcon_) return more ? GgmlType::q6_k : base_;
        if (layer < layers_ / 16) return GgmlType::q6_k;
        return more ? GgmlType::q5_k : base_;
      case Mix::iq4_nl:
      case Mix::iq4_xs: return first ? GgmlType::q5_k : base_;
      case Mix::q5_k_m: return more ? GgmlType::q6_k : base_;
      case Mix::q4_k_s: return !falcon_ && first ? GgmlType::q5_k : base_;
      default: return base_;
    }
  }

  GgmlType of_attention_output() const {
    if (falcon_) return mix_ == Mix::q3_k_l ? GgmlType::q4_k : base_;
    if (experts_ == 8) {
      const bool raised = is_one_of(mix_, Mix::q2_k, Mix::iq3_xs, Mix::iq3_xxs, Mix::q3_k_s, Mix::q3_k_m, Mix::iq4_nl,
                                    Mix::q4_k_s, Mix::q4_k_m, Mix::iq3_s, Mix::iq3_m, Mix::iq4_xs);
      return raised ? GgmlType::q5_k : base_;
    }
    switch (mix_) {
      case Mix::q2_k: return GgmlType::q3_k;
      case Mix::iq3_xxs: return GgmlType::iq3_s;
      case Mix::q3_k_m:
      case Mix::iq3_m: return GgmlType::q4_k;
      case Mix::q3_k_l: return GgmlType::q5_k;
      default: return base_;
    }
  }

  GgmlType of_gate(std::int64_t layer) const {
    const bool inner = layer >= layers_ / 8 && layer < 7 * layers_ / 8;
    return mix_ == Mix::iq3_xs && inner ? GgmlType::iq3_xxs : base_;
  }

  // Rows that are no whole number of blocks get a type with shorter ones, or F16.
  static GgmlType fitting(GgmlType type, std::int64_t columns) {
    if (columns % layout_of(type).block == 0) return type;
    GgmlType other = GgmlType::f16;
    switch (type) {
      case GgmlType::tq1_0:
      case GgmlType::tq2_0:
      case GgmlType::q2_0:
      case GgmlType::q2_k:
      case GgmlType::q3_k: other = GgmlType::q4_0; break;
      case GgmlType::iq1_s:
      case GgmlType::iq1_m:
      case GgmlType::iq2_xxs:
      case GgmlType::iq2_xs:
      case GgmlType::iq2_s:
      case GgmlType::iq3_xxs:
      case GgmlType::iq3_s:
      case GgmlType::iq4_xs: other = GgmlType::iq4_nl; break;
      case GgmlType::q4_k: other = GgmlType::q5_0; break;
      case GgmlType::q5_k: other = GgmlType::q5_1; break;
      case GgmlType::q6_k: other = GgmlType::q8_0; break;
      default: break;
    }
    return columns % layout_of(other).block == 0 ? other : GgmlType::f16;
  }

  Mix mix_;
  GgmlType base_;
  std::int64_t layers_;
  std::int64_t experts_ = 0;
  std::int64_t grouping_ = 1;
  std::int64_t values_ = 0;
  std::int64_t seen_values_ = 0, seen_down_ = 0, seen_gate_ = 0, seen_up_ = 0;
  bool falcon_ = false;
  bool seventy_ = false;
  bool has_output_ = false;
};

std::int64_t bytes_of(const MixTensor& tensor) {
  const GgmlLayout& layout = layout_of(tensor.type);
  std::int64_t blocks = tensor.shape.empty() ? 1 : tensor.shape.back() / layout.block;
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) blocks = multiply_saturated(blocks, tensor.shape[i]);
  return multiply_saturated(blocks, layout.bytes_of_block);
}

}  // namespace

bool is_gguf_mix(std::string_view name) { return find_mix(name) != nullptr; }

std::string gguf_mix_names() {
  std::string out;
  for (const MixRow& row : kMixes) out += fmt::format("{}{}", out.empty() ? "" : ", ", row.name);
  return out;
}

Expected<std::vector<MixTensor>> gguf_tensors(const Architecture& architecture, std::string_view mix) {
  const MixRow* row = find_mix(mix);
  if (row == nullptr) {
    return fail(ErrorCode::invalid_argument, "--quantization",
                fmt::format("'{}' is no mix of llama.cpp; known are {}", mix.substr(0, 40), gguf_mix_names()));
  }
  std::vector<MixTensor> out = untyped_gguf_tensors(architecture);
  Rule rule(architecture, out, *row);
  for (MixTensor& tensor : out) {
    tensor.type = rule.type_of(tensor);
    // The one type that llama-quantize replaces by none.
    if (row->mix == Mix::q1_0 && tensor.type == GgmlType::f16) {
      return fail(ErrorCode::invalid_argument, "--quantization",
                  fmt::format("Q1_0 wants rows of whole blocks of 128, {} has {}; choose another", tensor.name,
                              tensor.shape.back()));
    }
    tensor.bytes = bytes_of(tensor);
  }
  return out;
}

}  // namespace ullage::model
