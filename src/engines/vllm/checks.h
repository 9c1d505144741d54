// What vLLM refuses before it loads anything, in its own words.
#pragma once

#include <cstdint>

#include "base/expected.h"
#include "base/json.h"
#include "engines/vllm/options.h"
#include "model/architecture.h"
#include "model/cache.h"
#include "model/quantisation.h"

namespace ullage::engines::vllm {

// The longest sequence that the configuration allows: its positions, stretched as rope_scaling says.
// Source: vllm/config/model.py (_get_and_verify_max_len).
std::int64_t derived_length(const model::Architecture& architecture, const Json& config);

// A length above that is refused unless VLLM_ALLOW_LONG_MAX_MODEL_LEN is set.
Expected<void> check_length(const model::Architecture& architecture, const Json& config, std::int64_t max_model_len,
                            bool allows_long);

// Whether the configuration names layers that draft (MTP). Source: vllm/config/speculative.py (hf_config_override).
bool has_drafting_layers(const Json& config);

// Which engine a release that has two runs the model on. Source: vllm/engine/arg_utils.py (_is_v1_supported_oracle).
FirstEngine first_engine(Version release, const model::Architecture& architecture, const hardware::Gpu* card,
                         bool env_asks);

// "1 2 4", "1,2,4" or "[1, 2, 4]", ascending and each once. Those above `most_tokens` are not captured.
Expected<std::vector<std::int64_t>> read_capture_sizes(const std::string& text, std::int64_t most_tokens);

// fp8 with scales of blocks: tensor parallelism must leave whole blocks to every rank.
// Source: vllm/model_executor/layers/quantization/fp8.py (validate_fp8_block_shape, Fp8MoEMethod).
Expected<void> check_blocks(const model::Architecture& architecture, const Options& options,
                            const model::Quantisation& quantisation);

}  // namespace ullage::engines::vllm
