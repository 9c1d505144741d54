// What vLLM itself says when it starts, in the words of its releases: people search for these.
//
// Sources: vllm/v1/core/kv_cache_utils.py, vllm/v1/worker/gpu_worker.py and gpu_model_runner.py (V1);
// vllm/worker/worker.py and vllm/executor/executor_base.py (V0); https://github.com/vllm-project/vllm/pull/38270.
#pragma once

#include <string>
#include <vector>

#include "engines/vllm/budget.h"
#include "engines/vllm/options.h"

namespace ullage::engines::vllm {

// Lines about the cache; none where the engine does not come so far.
std::vector<std::string> log_lines(const Budget& budget, const Options& options);

// The error that ends the start; empty where it starts.
std::string refusal(const Budget& budget, const Options& options, std::int64_t used_bytes);

}  // namespace ullage::engines::vllm
