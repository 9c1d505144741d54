// A release as vLLM numbers them.
#pragma once

#include <string_view>

#include "engines/serving/version.h"

namespace ullage::engines::vllm {

using serving::to_string;
using serving::Version;

// The newest whose rules were read.
inline constexpr Version kNewest{0, 23, 1};

inline Expected<Version> parse_version(std::string_view text, std::string_view where) {
  return serving::parse_version(text, where, "vLLM", kNewest);
}

// Rules of older ones were not read: they are answered by those of the first. Before 0.2 the cache was counted
// otherwise.
inline constexpr Version kOldest{0, 5, 0};
inline constexpr Version kRefused{0, 2, 0};

// The rewritten engine, which is the default from here on.
inline constexpr Version kV1{0, 8, 0};
// The first engine's last release under the rules of its own, and the first without it.
inline constexpr Version kLastV0{0, 7, 3};
inline constexpr Version kWithoutV0{0, 11, 0};
// Latent vectors are kept in place of all heads' keys and values; before, those were, in heads of 256.
// Source: vllm/config.py (get_head_size) of 0.6 and 0.7.
inline constexpr Version kLatentCache{0, 7, 0};
// Layers with windows and states share a pool with the others; before, windows were kept as if they were full.
inline constexpr Version kHybridPools{0, 9, 2};
// The log's "GPU KV cache size" is what requests of max_model_len can hold; before, it is blocks over groups.
inline constexpr Version kPrintsCapacity{0, 21, 0};

// Whole graphs for decoding beside the piecewise ones, and fewer sizes of them.
// Source: vllm/config/compilation.py (cudagraph_mode), vllm/config/vllm.py (_set_cudagraph_sizes).
inline constexpr Version kCapturesTwice{0, 11, 0};
inline constexpr Version kCapturesCoarsely{0, 12, 0};
// Graphs are measured ahead of the cache, whether or not they are charged to the budget.
inline constexpr Version kEstimatesGraphs{0, 19, 0};
// What others hold of the card is not charged to the budget (V1; V0 did so from kOwnIncrease on); before, all that is
// taken was. Source: https://github.com/vllm-project/vllm/issues/21348
inline constexpr Version kOwnInstance{0, 9, 2};
inline constexpr Version kOwnIncrease{0, 6, 5};
// More sequences than there are blocks for their states are refused.
// Source: https://github.com/vllm-project/vllm/pull/38270
inline constexpr Version kCountsStates{0, 19, 0};

constexpr bool is_v1(Version version) { return version >= kV1; }
constexpr bool charges_others(Version version) {
  return version < kOwnIncrease || (is_v1(version) && version < kOwnInstance);
}

}  // namespace ullage::engines::vllm
