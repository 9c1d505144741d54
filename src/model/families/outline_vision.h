// Outlines of models that see images or hear: a tower, what joins it to the text, and a text model that may be a family
// with a forward pass of its own.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "model/architecture.h"

namespace ullage::model {

Expected<Architecture> outline_gemma3(const JsonObject& config);
Expected<Architecture> outline_gemma3n_text(const JsonObject& config);
Expected<Architecture> outline_gemma4(const JsonObject& config);
Expected<Architecture> outline_gemma4_text(const JsonObject& config);
Expected<Architecture> outline_glm4v(const JsonObject& config);
Expected<Architecture> outline_internvl_chat(const JsonObject& config);
Expected<Architecture> outline_kimi_k25(const JsonObject& config);
Expected<Architecture> outline_kimi_vl(const JsonObject& config);
Expected<Architecture> outline_llama4(const JsonObject& config);
Expected<Architecture> outline_llama4_text(const JsonObject& config);
Expected<Architecture> outline_locateanything(const JsonObject& config);
Expected<Architecture> outline_minicpmv(const JsonObject& config);
Expected<Architecture> outline_minimax_m3(const JsonObject& config);
Expected<Architecture> outline_minimax_m3_vl(const JsonObject& config);
Expected<Architecture> outline_ministral3(const JsonObject& config);
Expected<Architecture> outline_mistral3(const JsonObject& config);
Expected<Architecture> outline_mllama(const JsonObject& config);
Expected<Architecture> outline_molmo(const JsonObject& config);
Expected<Architecture> outline_qwen2_audio(const JsonObject& config);

// Writes the tower of Qwen3-VL out behind `arch`, whose text has `arch.hidden`.
Expected<void> add_qwen_tower(Architecture& arch, const JsonObject& vision);

// Moves names from "model." to `prefix`; the head's too where it has one.
void rename_model(Architecture& arch, std::string_view prefix);

}  // namespace ullage::model
