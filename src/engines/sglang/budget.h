// How SGLang shares out a GPU when it starts: of what is free before the weights are loaded, a share is for weights and
// pools together; the rest is left to graphs, activations and whatever else comes.
//
// Source: sglang/srt/model_executor/model_runner.py (init_torch_distributed, load_model, profile_max_num_token).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engines/serving/rank_weights.h"
#include "engines/sglang/options.h"
#include "engines/sglang/pools.h"

namespace ullage::engines::sglang {

enum class Outcome : std::uint8_t {
  starts,
  weights_too_large,  // out of memory while they are loaded
  no_room,            // weights leave nothing of the share to the pools: it must be raised
  too_few_states,     // no request can have the states it needs
  graphs_overflow,    // pools leave too little for captured graphs: it must be lowered
  prefill_overflow,   // it starts, and the first long prompt runs out
};

// What a forward pass of the largest chunk needs beside weights and pools, or a step of the largest batch.
struct Activations {
  std::int64_t forward_bytes = 0;    // of the widest layer
  std::int64_t workspace_bytes = 0;  // of experts
  std::int64_t logits_bytes = 0;     // of the largest batch
  std::int64_t bytes() const { return forward_bytes + workspace_bytes + logits_bytes; }
};

// One GPU of a pipeline stage.
struct StageBudget {
  serving::Stage stage;
  serving::RankWeights weights;
  PoolPlan plan;
  PoolSizes sizes;
  PoolBytes pools;
  Activations activations;
  std::int64_t graph_bytes = 0;
  std::int64_t rest_bytes = 0;  // left to the pools, may be negative
};

// What one end of the measured figures makes of it.
struct Settled {
  std::int64_t context_bytes = 0;    // CUDA's and NCCL's, before the engine's first look
  std::int64_t before_bytes = 0;     // free on the card before weights: what the share is of
  std::int64_t workspace_bytes = 0;  // of attention kernels, after the pools
  std::vector<StageBudget> stages;
  std::size_t tightest = 0;  // all stages have as many tokens as this one
  Requests requests;
  Outcome outcome = Outcome::starts;

  const StageBudget& at() const { return stages[tightest]; }
  // Of one GPU once graphs are captured and the largest chunk is put in.
  std::int64_t process_bytes(std::size_t stage) const;
  // Free on the card when the engine says that it is ready.
  std::int64_t free_bytes(std::size_t stage) const;
};

struct Budget {
  std::int64_t total_bytes = 0;  // the card's; 0: no card was named
  std::int64_t graphs = 0;       // captured
  Settled middle;
  Settled low;   // every measured figure at its lowest
  Settled high;  // and at its highest

  bool certain() const { return low.outcome == middle.outcome && high.outcome == middle.outcome; }
  // The least share with which weights leave room for one page of every layer; none where the weights do not fit.
  std::optional<double> least_fraction(const Options& options) const;
};

// `card` offers its usable_bytes, less `used_bytes` that others hold. Without a card and without --max-total-tokens the
// pools are what one request of the context's length needs.
Expected<Budget> start(const model::Architecture& architecture, const Options& options, const hardware::Gpu* card,
                       std::int64_t used_bytes, const model::Quantisation* quantisation);

}  // namespace ullage::engines::sglang
