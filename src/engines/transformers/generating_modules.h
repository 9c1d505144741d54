// transformers' modules as generate() calls them: in evaluation, with a cache, positions and a mask of which tokens
// count.
#pragma once

#include <vector>

#include "engines/pytorch/transformers_modules.h"
#include "engines/transformers/key_value_cache.h"

namespace ullage::engines::transformers {

class GeneratingModules : public pytorch::TransformersModules {
 public:
  GeneratingModules(tensor::Context& context, pytorch::ModelState& state, const pytorch::TrainOptions& options,
                    KeyValueCache& cache, bool fixed)
      : TransformersModules(context, state, options), cache_(cache), fixed_(fixed) {}

  // Of the next forward pass: [batch, seq], and [batch, tokens so far].
  void give(tensor::Tensor positions, tensor::Tensor counts) {
    positions_ = std::move(positions);
    counts_ = std::move(counts);
  }
  // Masks that are made before the forward pass, in the order of the Architecture's mask_windows.
  void give_masks(std::vector<tensor::Tensor> masks) { masks_ = std::move(masks); }
  // From here on tokens come one by one.
  void decode() { decodes_ = true; }
  tensor::Tensor make_mask(std::optional<std::int64_t> window, std::int64_t batch, std::int64_t seq, DType dtype,
                           model::MaskSource source);

  tensor::Tensor position_ids(const tensor::Tensor&) override { return positions_; }
  // With a fixed cache the mask that was made stands in their place.
  tensor::Tensor counted_tokens() override { return counts_ || masks_.empty() ? counts_ : masks_.front(); }
  tensor::Tensor causal_mask(std::optional<std::int64_t> window, const tensor::Tensor& hidden,
                             model::MaskSource source) override;
  void extend_past(tensor::Tensor& key, tensor::Tensor& value) override { cache_.update(context().layer, key, value); }
  void cache(const model::Attention&, tensor::Tensor&, tensor::Tensor&) override {}  // extend_past does
  // _optimize_model_for_decode: what is grouped in prefill is batched behind it.
  tensor::Tensor experts(const model::Experts& module, tensor::Tensor x, tensor::Tensor chosen,
                         tensor::Tensor weights) override;
  tensor::Tensor dropout(double, tensor::Tensor x) override { return x; }

 private:
  bool skips(const tensor::Tensor& counted, std::optional<std::int64_t> window, const KeyValueCache::MaskSizes& sizes,
             std::int64_t seq);

  KeyValueCache& cache_;
  bool fixed_;
  bool decodes_ = false;
  tensor::Tensor positions_;
  tensor::Tensor counts_;
  std::vector<tensor::Tensor> masks_;
  std::size_t next_mask_ = 0;
};

}  // namespace ullage::engines::transformers
