#include "model/outline.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "model/families/outline_decoders.h"
#include "model/families/outline_encoders.h"
#include "model/families/outline_hybrid.h"
#include "model/families/outline_latent.h"
#include "model/families/outline_vision.h"
#include "model/families/t5.h"
#include "model/family.h"
#include "model/limits.h"

namespace ullage::model {
namespace {

constexpr std::array kOutlines{
    Outline{"PanguEmbedded", outline_pangu_embedded},
    Outline{"albert", outline_albert},
    Outline{"bamba", outline_bamba},
    Outline{"bitnet", outline_bitnet},
    Outline{"blip", outline_blip},
    Outline{"clip_text_model", outline_clip_text},
    Outline{"dbrx", outline_dbrx},
    Outline{"deepseek", outline_deepseek},
    Outline{"deepseek_ref", outline_deepseek_v4},
    Outline{"deepseek_v32", outline_deepseek_v32},
    Outline{"deepseek_v4", outline_deepseek_v4},
    Outline{"dinov2", outline_dinov2},
    Outline{"distilbert", outline_distilbert},
    Outline{"falcon_h1", outline_falcon_h1},
    Outline{"falcon_mamba", outline_falcon_mamba},
    Outline{"gemma3", outline_gemma3},
    Outline{"gemma3n_text", outline_gemma3n_text},
    Outline{"gemma4", outline_gemma4},
    Outline{"gemma4_text", outline_gemma4_text},
    Outline{"glm4v", outline_glm4v},
    Outline{"glm_moe_dsa", outline_glm_moe_dsa},
    Outline{"granitemoehybrid", outline_granitemoehybrid},
    Outline{"internlm", outline_internlm},
    Outline{"internlm3", outline_internlm3},
    Outline{"internvl_chat", outline_internvl_chat},
    Outline{"jamba", outline_jamba},
    Outline{"kimi_k2", outline_kimi_k2},
    Outline{"kimi_k25", outline_kimi_k25},
    Outline{"kimi_vl", outline_kimi_vl},
    Outline{"lfm2", outline_lfm2},
    Outline{"llama4", outline_llama4},
    Outline{"llama4_text", outline_llama4_text},
    Outline{"locateanything", outline_locateanything},
    Outline{"mamba", outline_mamba},
    Outline{"mamba2", outline_mamba2},
    Outline{"mimo", outline_mimo},
    Outline{"mimo_v2_flash", outline_mimo_v2_flash},
    Outline{"minicpm", outline_minicpm},
    Outline{"minicpm3", outline_minicpm3},
    Outline{"minicpmv", outline_minicpmv},
    Outline{"minimax_m3", outline_minimax_m3},
    Outline{"minimax_m3_vl", outline_minimax_m3_vl},
    Outline{"ministral3", outline_ministral3},
    Outline{"mistral3", outline_mistral3},
    Outline{"mllama", outline_mllama},
    Outline{"molmo", outline_molmo},
    Outline{"mpnet", outline_mpnet},
    Outline{"nemotron-nas", outline_nemotron_nas},
    Outline{"nemotron_h", outline_nemotron_h},
    Outline{"nomic_bert", outline_nomic_bert},
    Outline{"orion", outline_orion},
    Outline{"qwen2_audio", outline_qwen2_audio},
    Outline{"qwen3_5", outline_qwen3_5},
    Outline{"qwen3_5_moe", outline_qwen3_5_moe},
    Outline{"qwen3_5_moe_text", outline_qwen3_5_moe_text},
    Outline{"qwen3_5_text", outline_qwen3_5_text},
    Outline{"qwen3_next", outline_qwen3_next},
    Outline{"step3p7", outline_step3p7},
    Outline{"t5", outline_t5},
    Outline{"wavlm", outline_wavlm},
    Outline{"xlm-roberta", outline_xlm_roberta},
};

struct Feature {
  std::string_view model_type;
  std::string_view name;
};

constexpr std::array kUnmodelled{
    Feature{"deepseek_vl_v2", "image encoders (SAM behind a language model)"},
    Feature{"kimi_k3", "delta attention of Kimi among latent experts"},
    Feature{"phi3_v", "images cut into crops (Phi-3 Vision)"},
    Feature{"qwen2_5_omni", "speech output (talker and vocoder)"},
    Feature{"qwen3_omni_moe", "speech output (talker and vocoder)"},
    Feature{"rwkv5", "time mixing (RWKV)"},
};

}  // namespace

namespace {

// Of a wrapper that is not known, the text model where its outline is.
Expected<Architecture> build_text_outline(const JsonObject& whole, const std::string& type) {
  const Json* text = whole.find("text_config");
  const bool known = find_family(type) != nullptr || text == nullptr || !text->is_object();
  const auto nested = known ? Expected<std::string>("") : JsonObject(*text, "").string("model_type", "");
  if (!nested || find_outline(*nested) == nullptr) return build_architecture(whole.json(), whole.where());
  auto built = build_outline(*text, whole.where("text_config"));
  if (built) built->notes.push_back({NoteKind::text_part_only, type});
  return built;
}

}  // namespace

std::span<const Outline> outlines() { return kOutlines; }

const Outline* find_outline(std::string_view model_type) {
  for (const Outline& outline : kOutlines) {
    if (outline.model_type == model_type) return &outline;
  }
  return nullptr;
}

std::string_view unmodelled_feature(std::string_view model_type) {
  for (const Feature& feature : kUnmodelled) {
    if (feature.model_type == model_type) return feature.name;
  }
  return {};
}

Expected<Architecture> build_outline(const Json& config, std::string_view where) {
  if (!config.is_object()) return build_architecture(config, where);
  const JsonObject whole(config, std::string(where));
  const auto type = whole.string("model_type", "");
  const Outline* outline = type ? find_outline(*type) : nullptr;
  if (outline == nullptr) return build_text_outline(whole, type.value_or(""));
  auto built = outline->build(whole);
  if (!built) return built;
  if (auto counted = check_parameters(*built, whole.where()); !counted) return tl::unexpected<Error>(counted.error());
  return built;
}

}  // namespace ullage::model
