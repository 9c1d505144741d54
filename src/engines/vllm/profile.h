// What vLLM's profile run reaches: the largest forward pass that the scheduler may ask for, then the sampler.
//
// Source: vllm/v1/worker/gpu_model_runner.py (profile_run, _dummy_sampler_run); V0: vllm/worker/model_runner.py.
// Counts of copies are rules of data/engines/vllm.jsonl.
#pragma once

#include <cstdint>

#include "engines/vllm/options.h"
#include "engines/vllm/rules.h"
#include "engines/vllm/weights.h"
#include "model/architecture.h"

namespace ullage::engines::vllm {

struct ProfilePeak {
  std::int64_t sampler_bytes = 0;    // of the last stage
  std::int64_t forward_bytes = 0;    // of the widest layer
  std::int64_t workspace_bytes = 0;  // of experts; it stays when the forward pass is over
  std::int64_t encoder_bytes = 0;    // what an encoder of images gave, which is held meanwhile
  std::int64_t states_bytes = 0;     // V0: of all sequences; the first forward pass makes them, and they stay
  std::int64_t rest_bytes = 0;
  std::int64_t bytes() const;
};

// `expert_workspaces`: the experts run in fused kernels with buffers of their own.
ProfilePeak profile_peak(const model::Architecture& architecture, const Options& options, const Stage& stage,
                         const Surroundings& around, bool expert_workspaces = true);

// The largest batch that a graph is captured for, and
std::int64_t largest_capture(const Options& options);
// batch sizes that graphs are captured for, over all kinds of graphs.
std::int64_t captured_graphs(const Options& options);

// How much more than weights is held while they are loaded.
std::int64_t load_peak_over_weights(const Options& options, const hardware::Gpu* card);

// Bytes of the captured graphs; zero with enforce_eager.
std::int64_t graph_bytes(const Options& options, std::int64_t layers, const Surroundings& around);

}  // namespace ullage::engines::vllm
