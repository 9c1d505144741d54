// Where the figures of vLLM's start come from: rules with their ids, releases and sources.
#pragma once

#include "report/vllm_report.h"

namespace ullage::report {

Why vllm_weights_why(const VllmQuestion& question);
Why vllm_rotary_why(const VllmQuestion& question);
Why vllm_cache_why(const VllmQuestion& question);
Why vllm_activations_why(const VllmQuestion& question);
Why vllm_fragmentation_why(const VllmQuestion& question);
Why vllm_graphs_why(const VllmQuestion& question);
Why vllm_non_torch_why(const VllmQuestion& question);
Why vllm_context_why(const VllmQuestion& question);

}  // namespace ullage::report
