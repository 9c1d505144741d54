// What one GPU holds of a model's weights in vLLM: serving/rank_weights.h, cut by its options.
#pragma once

#include "engines/serving/rank_weights.h"
#include "engines/vllm/options.h"

namespace ullage::engines::vllm {

using serving::has_mxfp4_experts;
using serving::pipeline_stages;
using serving::RankWeights;
using serving::Stage;

// Source: vllm/model_executor/models/gemma.py and gemma2.py to 0.6: a table of its own in every layer; others share
// one.
inline constexpr Version kGemmaSharesTables{0, 7, 0};

inline bool has_tables_by_layer(const model::Architecture& architecture, const Options& options) {
  return options.version < kGemmaSharesTables && (architecture.family == "gemma" || architecture.family == "gemma2");
}

// Everything is cut by tensor-parallel rank; experts over the ranks of all copies, or shared out whole among them.
inline serving::Shares shares_of(const Options& options) {
  serving::Shares out;
  out.dtype = out.rotary_dtype = options.dtype;
  out.vocabulary = out.embedding = out.heads = out.ffn = options.tensor_parallel_size;
  (options.enable_expert_parallel ? out.experts : out.expert_ffn) = options.expert_ranks();
  out.rotary_stretch = options.rotary_stretch;
  out.cpu_offload_bytes = options.cpu_offload_bytes;
  out.draft_layers = options.draft_layers;
  out.lora = options.lora;
  return out;
}

inline RankWeights rank_weights(const model::Architecture& architecture, const Options& options, const Stage& stage,
                                const model::Quantisation* quantisation) {
  serving::Shares shares = shares_of(options);
  shares.rotary_tables_by_layer = has_tables_by_layer(architecture, options);
  return serving::rank_weights(architecture, shares, stage, quantisation);
}

}  // namespace ullage::engines::vllm
