// How an engine that shares a card out by one rule starts: what each GPU holds, and what its cache carries.
#pragma once

#include <cstdint>
#include <optional>

#include "engines/budget/options.h"
#include "engines/budget/pool.h"
#include "engines/vllm/budget.h"
#include "hardware/gpu.h"
#include "model/architecture.h"
#include "model/quantisation.h"

namespace ullage::engines::budget {

using vllm::Outcome;
using vllm::Span;

struct Account {
  vllm::RankWeights weights;
  Holdings held;  // of one GPU of the stage whose cache holds least, measured figures in the middle of their range
  Holdings low;
  Holdings high;
  Pool pool;
  Pool pool_low;                    // where the measured figures are high
  Pool pool_high;                   // and where they are low
  std::int64_t request_blocks = 0;  // of the longest request
  double max_concurrency = 0;       // longest requests at once, by blocks
  std::int64_t most_requests = 0;   // and by the engine's limit of a batch
  Outcome outcome = Outcome::starts;
  bool certain = true;
  std::int64_t short_bytes = 0;  // by which a start is refused

  std::int64_t cache_bytes() const { return pool.blocks > 0 ? pool.tokens * held.token : 0; }
  // With the cache full and the largest step under way.
  Span process() const;
};

// Without a card the cache is what one longest request needs. Unsupported: layers that keep a state of fixed size.
Expected<Account> account(const model::Architecture& architecture, const Options& options, const hardware::Gpu* card,
                          std::int64_t used_bytes, const model::Quantisation* quantisation);

// Blocks that a request takes when it has all its tokens.
std::int64_t request_blocks(const Options& options, std::int64_t input_tokens, std::int64_t output_tokens);

}  // namespace ullage::engines::budget
