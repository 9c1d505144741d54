// Batch sizes that SGLang captures CUDA graphs for.
//
// Source: sglang/srt/model_executor/cuda_graph_runner.py (get_batch_sizes_to_capture) to 0.5.2;
// sglang/srt/server_args.py (_generate_cuda_graph_batch_sizes, _generate_piecewise_cuda_graph_tokens) since.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/sglang/options.h"

namespace ullage::engines::sglang {

// In rising order; empty with disable_cuda_graph. `requests`: the most that may run at once, which bounds them.
std::vector<std::int64_t> captured_batches(const Options& options, std::int64_t requests);

// Numbers of tokens that piecewise graphs of prefill are captured for. `latent`: attention keeps a latent vector.
std::int64_t piecewise_sizes(const Options& options, bool latent);

}  // namespace ullage::engines::sglang
