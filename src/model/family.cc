#include "model/family.h"

#include <fmt/core.h>

#include <array>
#include <vector>

#include "base/nearest.h"
#include "model/families/baichuan.h"
#include "model/families/bart.h"
#include "model/families/bert.h"
#include "model/families/bloom.h"
#include "model/families/chatglm.h"
#include "model/families/clip_vision.h"
#include "model/families/cohere.h"
#include "model/families/deepseek.h"
#include "model/families/exaone4.h"
#include "model/families/falcon.h"
#include "model/families/gemma.h"
#include "model/families/glm4.h"
#include "model/families/glm4_moe.h"
#include "model/families/gpt2.h"
#include "model/families/gpt_bigcode.h"
#include "model/families/gpt_neo.h"
#include "model/families/gpt_neox.h"
#include "model/families/gpt_oss.h"
#include "model/families/gptj.h"
#include "model/families/granite.h"
#include "model/families/granitemoe.h"
#include "model/families/internlm2.h"
#include "model/families/llama.h"
#include "model/families/llava.h"
#include "model/families/minimax_m2.h"
#include "model/families/mixtral.h"
#include "model/families/mpt.h"
#include "model/families/olmo.h"
#include "model/families/olmoe.h"
#include "model/families/opt.h"
#include "model/families/phi.h"
#include "model/families/phi3.h"
#include "model/families/phimoe.h"
#include "model/families/qwen.h"
#include "model/families/qwen3_vl.h"
#include "model/families/qwen_moe.h"
#include "model/families/qwen_v1.h"
#include "model/families/qwen_vl.h"
#include "model/families/seed_oss.h"
#include "model/families/smollm3.h"
#include "model/families/stablelm.h"
#include "model/families/starcoder2.h"
#include "model/families/t5.h"
#include "model/families/torchvision.h"
#include "model/families/vit.h"
#include "model/families/whisper.h"
#include "model/limits.h"
#include "model/outline.h"

namespace ullage::model {
namespace {

constexpr std::array kFamilies{
    Family{"RefinedWeb", build_refined_web, forward_falcon},
    Family{"RefinedWebModel", build_refined_web, forward_falcon},
    Family{"baichuan", build_baichuan, forward_baichuan},
    Family{"bart", build_bart, forward_bart},
    Family{"bert", build_bert, forward_bert},
    Family{"bloom", build_bloom, forward_bloom},
    Family{"chatglm", build_chatglm, forward_chatglm},
    Family{"clip", build_clip, forward_clip_vision},
    Family{"clip_vision_model", build_clip_vision, forward_clip_vision},
    Family{"cohere", build_cohere, forward_cohere},
    Family{"cohere2", build_cohere2, forward_cohere2},
    Family{"deepseek_v2", build_deepseek_v2, forward_deepseek_v2},
    Family{"deepseek_v3", build_deepseek_v3, forward_deepseek_v3},
    Family{"exaone4", build_exaone4, forward_exaone4},
    Family{"falcon", build_falcon, forward_falcon},
    Family{"gemma", build_gemma, forward_llama},
    Family{"gemma2", build_gemma2, forward_gemma2},
    Family{"gemma3_text", build_gemma3, forward_gemma3},
    Family{"glm4", build_glm4, forward_glm4},
    Family{"glm4_moe", build_glm4_moe, forward_glm4_moe},
    Family{"glm4_moe_lite", build_glm4_moe_lite, forward_deepseek_v3},
    Family{"gpt2", build_gpt2, forward_gpt2},
    Family{"gpt_bigcode", build_gpt_bigcode, forward_gpt_bigcode},
    Family{"gpt_neo", build_gpt_neo, forward_gpt_neo},
    Family{"gpt_neox", build_gpt_neox, forward_gpt_neox},
    Family{"gpt_oss", build_gpt_oss, forward_gpt_oss},
    Family{"gptj", build_gptj, forward_gptj},
    Family{"granite", build_granite, forward_granite},
    Family{"granitemoe", build_granitemoe, forward_granitemoe},
    Family{"internlm2", build_internlm2, forward_internlm2},
    Family{"llama", build_llama, forward_llama},
    Family{"llava", build_llava, forward_llava},
    Family{"minimax_m2", build_minimax_m2, forward_minimax_m2},
    Family{"mistral", build_mistral, forward_llama},
    Family{"mixtral", build_mixtral, forward_mixtral},
    Family{"mpt", build_mpt, forward_mpt},
    Family{"olmo", build_olmo, forward_olmo},
    Family{"olmo2", build_olmo2, forward_olmo2},
    Family{"olmo3", build_olmo3, forward_olmo2},
    Family{"olmoe", build_olmoe, forward_olmoe},
    Family{"opt", build_opt, forward_opt},
    Family{"phi", build_phi, forward_phi},
    Family{"phi-msft", build_phi_msft, forward_phi},
    Family{"phi3", build_phi3, forward_phi3},
    Family{"phimoe", build_phimoe, forward_phimoe},
    Family{"qwen", build_qwen, forward_qwen},
    Family{"qwen2", build_qwen2, forward_llama},
    Family{"qwen2_5_vl", build_qwen2_5_vl, forward_qwen2_vl},
    Family{"qwen2_moe", build_qwen2_moe, forward_qwen2_moe},
    Family{"qwen2_vl", build_qwen2_vl, forward_qwen2_vl},
    Family{"qwen3", build_qwen3, forward_qwen3},
    Family{"qwen3_moe", build_qwen3_moe, forward_qwen3_moe},
    Family{"qwen3_vl", build_qwen3_vl, forward_qwen3_vl},
    Family{"qwen3_vl_moe", build_qwen3_vl_moe, forward_qwen3_vl_moe},
    Family{"roberta", build_roberta, forward_roberta},
    Family{"seed_oss", build_seed_oss, forward_llama},
    Family{"smollm3", build_smollm3, forward_llama},
    Family{"stablelm", build_stablelm, forward_stablelm},
    Family{"starcoder2", build_starcoder2, forward_llama},
    Family{"t5", build_t5, forward_t5},
    Family{"torchvision", build_torchvision, forward_torchvision},
    Family{"vit", build_vit, forward_vit},
    Family{"whisper", build_whisper, forward_whisper},
};

tl::unexpected<Error> unknown_type(const std::string& type, std::string_view nested, std::string where) {
  if (find_outline(type) != nullptr || find_outline(nested) != nullptr) {
    return fail(ErrorCode::unsupported, std::move(where),
                fmt::format("of model type '{}' the outline alone is known, not the forward pass; `ullage inspect` "
                            "answers for its weights",
                            excerpt(type)));
  }
  if (const std::string_view feature = unmodelled_feature(type); !feature.empty()) {
    return fail(
        ErrorCode::unsupported, std::move(where),
        fmt::format("model type '{}' is not modelled for its {}; name a model without it", excerpt(type), feature));
  }
  std::vector<std::string_view> known;
  for (const Family& family : families()) known.push_back(family.model_type);
  const std::vector<std::string> near = nearest_names(nested.empty() ? type : nested, known);
  const std::string around = nested.empty() ? "" : fmt::format(" around the text model '{}'", excerpt(nested));
  return fail(
      ErrorCode::unsupported, std::move(where),
      fmt::format("model type '{}'{} is not modelled; {}", excerpt(type), around,
                  near.empty() ? "`ullage models` counts the parameters of those that are" : did_you_mean(near)));
}

// Where the nested configuration of the text model is; empty: there is none.
std::string_view text_key(const JsonObject& config) {
  for (const std::string_view key : {"text_config", "llm_config", "language_config"}) {
    if (const Json* nested = config.find(key); nested != nullptr && nested->is_object()) return key;
  }
  return {};
}

Expected<std::string> read_model_type(const JsonObject& config) {
  auto type = config.string("model_type", "");
  if (!type || !type->empty()) return type;
  return fail(ErrorCode::malformed, config.where("model_type"), "missing; is this the configuration of a model?");
}

Expected<Architecture> build_checked(const Family& family, const JsonObject& config) {
  auto built = family.build(config);
  if (!built) return built;
  if (auto counted = check_parameters(*built, config.where()); !counted) return tl::unexpected<Error>(counted.error());
  return built;
}

// Of a wrapper such as a vision-language model only the text model is known.
Expected<Architecture> build_text_part(const std::string& outer, const JsonObject& whole) {
  const std::string_view key = text_key(whole);
  if (key.empty()) return unknown_type(outer, "", whole.where("model_type"));
  const JsonObject text(*whole.find(key), whole.where(key));
  const auto type = read_model_type(text);
  // An outline's class knows its text model, so that its configuration may leave the type out.
  if (!type && find_outline(outer) != nullptr) return unknown_type(outer, "", whole.where("model_type"));
  if (!type) return tl::unexpected<Error>(type.error());
  const Family* family = find_family(*type);
  if (family == nullptr) return unknown_type(outer, *type, whole.where("model_type"));
  auto built = build_checked(*family, text);
  if (built) built->notes.push_back({NoteKind::text_part_only, outer});
  return built;
}

tl::unexpected<Error> bad_assignment(std::string_view assignment, std::string_view what) {
  return fail(ErrorCode::invalid_argument, "--set", fmt::format("'{}' {}", excerpt(assignment), what));
}

// The names between the dots.
std::vector<std::string_view> split_path(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.')) {
    parts.push_back(path.substr(0, dot));
    path.remove_prefix(dot + 1);
  }
  parts.push_back(path);
  return parts;
}

// The value at a path, made where there was none; nullptr: it leads into something that is no object.
Json* place_of(Json& config, std::span<const std::string_view> path) {
  Json* place = &config;
  for (const std::string_view name : path) {
    if (place->is_null() && place != &config) *place = Json::object();
    if (!place->is_object()) return nullptr;
    place = &(*place)[std::string(name)];
  }
  return place;
}

bool is_utf8(std::string_view text) {
  try {
    Json(text).dump();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

Expected<Architecture> build_architecture(const Json& config, std::string_view where) {
  if (!config.is_object())
    return fail(ErrorCode::malformed, std::string(where), "expected a JSON object with the model's configuration");
  const JsonObject whole(config, std::string(where));
  const auto type = read_model_type(whole);
  if (!type) return tl::unexpected<Error>(type.error());
  const Family* family = find_family(*type);
  return family != nullptr ? build_checked(*family, whole) : build_text_part(*type, whole);
}

Expected<void> set_field(Json& config, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == assignment.npos || equals == 0) return bad_assignment(assignment, "is not KEY=VALUE");
  if (!is_utf8(assignment)) return bad_assignment(assignment.substr(0, equals), "is set to what is no UTF-8 text");
  const std::vector<std::string_view> path = split_path(assignment.substr(0, equals));
  if (path.size() > static_cast<std::size_t>(kMaxJsonDepth))
    return bad_assignment(assignment, "reaches deeper than any configuration");
  for (const std::string_view name : path) {
    if (name.empty()) return bad_assignment(assignment, "has an empty name in its key; write KEY.KEY=VALUE");
  }
  const std::string_view text = assignment.substr(equals + 1);
  auto value = parse_json(text, "--set");
  if (!value && value.error().code == ErrorCode::too_large) return tl::unexpected<Error>(value.error());
  Json* place = place_of(config, path);
  if (place == nullptr) return bad_assignment(assignment, "leads into something that is no object");
  *place = value ? *std::move(value) : Json(text);
  return {};
}

bool reads_field(const Json& config, std::string_view path) {
  Json changed = config;
  Json* place = place_of(changed, split_path(path));
  if (place == nullptr) return false;
  const auto build = build_architecture(config, "") ? build_architecture : build_outline;
  if (!build(config, "")) return false;
  // A text where it is a list that is read.
  *place = Json::array();
  if (!build(changed, "")) return true;
  *place = "no list";
  return !build(changed, "");
}

}  // namespace ullage::model
