// LMDeploy: cache_max_entry_count of what is free behind the weights; to 0.2.1 of the whole card.
//
// Sources: docs/en/inference/turbomind_config.md (k/v cache size); src/turbomind/models/llama/BlockManager.cc;
// lmdeploy/pytorch/engine/executor/base.py (_get_runtime_size: the other engine first sets buffers aside, for half as
// many tokens until sixteen blocks are left).
#pragma once

#include "engines/budget/options.h"
#include "engines/budget/pool.h"

namespace ullage::engines::lmdeploy {

// Before this release the fraction is of all that the card has.
inline constexpr budget::Version kOfWhatIsFree{0, 2, 2};

budget::Pool pool(const budget::Options& options, const budget::Holdings& held);

}  // namespace ullage::engines::lmdeploy
