// MindIE: npuMemSize gigabytes for the cache, or what its guide computes of a card.
//
// Sources, MindIE Service's developer guide: hiascend.com, mindie 1.0.RC1, mindie_service0006 (npuMemSize = Floor[(free
// - weights / cards - what sampling takes) x 0.8], maxBatchSize = Total Block Num / Block Num); error reference
// MIE05E01000A (kv_cache = total_memory x memory_fraction - weight - workspace, where npuMemSize is -1).
#pragma once

#include "engines/budget/options.h"
#include "engines/budget/pool.h"

namespace ullage::engines::mindie {

// Blocks of one request: its input and its output begin blocks of their own ("Block Num").
std::int64_t request_blocks(const budget::Options& options, std::int64_t input_tokens, std::int64_t output_tokens);

budget::Pool pool(const budget::Options& options, const budget::Holdings& held);

}  // namespace ullage::engines::mindie
