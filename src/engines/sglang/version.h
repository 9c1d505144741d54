// Releases of SGLang between which rules change.
#pragma once

#include <string_view>

#include "engines/serving/version.h"

namespace ullage::engines::sglang {

using serving::to_string;
using serving::Version;

// The newest whose rules were read.
inline constexpr Version kNewest{0, 5, 12};

inline Expected<Version> parse_version(std::string_view text, std::string_view where) {
  return serving::parse_version(text, where, "SGLang", kNewest);
}

// Cards above 80 GiB get a share of their own, which 0.4.7 changes once more.
// Source: sglang/srt/server_args.py of 0.4.6 and 0.4.7.
inline constexpr Version kKnowsLargeCards{0, 4, 6};
inline constexpr Version kBlendsLargeCards{0, 4, 7};
// What is held back is counted in MiB, whatever the share. Source: sglang/srt/server_args.py of 0.4.8.
inline constexpr Version kReserves{0, 4, 8};
// And follows from the chunk and the largest graph. Source: sglang/srt/server_args.py of 0.5.3.
inline constexpr Version kReservesByUse{0, 5, 3};
// The factor of models that see follows the size of their tower. Source: sglang/srt/server_args.py of 0.4.10.
inline constexpr Version kMeasuresTowers{0, 4, 10};
// Pools for layers with windows are cut by bytes; before, by layers, as if all layers were alike.
// Source: https://github.com/sgl-project/sglang/pull/18039
inline constexpr Version kSplitsByBytes{0, 5, 9};
// Drafted tokens have room beside what was measured until here. Source: sglang/srt/model_executor/model_runner.py.
inline constexpr Version kNoDraftRoom{0, 5, 7};
// Requests that were asked for are held to what the pool may carry.
// Source: sglang/srt/model_executor/model_runner_kv_cache_mixin.py (_resolve_max_num_reqs).
inline constexpr Version kLimitsRequests{0, 5, 10};
// The scheduler's line tells what is free on the card, too. Source: sglang/srt/managers/scheduler.py.
inline constexpr Version kPrintsFreeMemory{0, 4, 7};
// Refusals name the fraction. Source: sglang/srt/model_executor/model_runner.py of 0.5.6, pool_configurator.py.
inline constexpr Version kNamesFraction{0, 5, 6};

}  // namespace ullage::engines::sglang
