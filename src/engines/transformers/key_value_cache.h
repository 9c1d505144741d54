// The classes of transformers/cache_utils.py (5.12) that hold keys and values: DynamicCache and StaticCache with their
// layers for windows, DynamicCache that offloads, QuantizedCache.
#pragma once

#include <vector>

#include "engines/transformers/options.h"
#include "engines/transformers/quantised_tokens.h"
#include "tensor/ops.h"

namespace ullage::engines::transformers {

class KeyValueCache {
 public:
  KeyValueCache(tensor::Context& context, const model::Architecture& architecture, const ServeOptions& options);

  // Takes in keys and values [batch, heads, tokens, dim] of a layer and puts what attention is to read in their place.
  void update(std::int64_t layer, tensor::Tensor& key, tensor::Tensor& value);

  struct MaskSizes {
    std::int64_t keys = 0;    // that attention will read
    std::int64_t offset = 0;  // tokens before the first of them
  };
  // For the layers that a mask with or without a window is made for.
  MaskSizes mask_sizes(bool slides, std::int64_t queries) const;

  // As if so many tokens had come one by one.
  void jump_to(std::int64_t tokens);

 private:
  struct Layer {
    std::int64_t window = 0;  // 0: none
    std::int64_t seen = 0;    // tokens
    tensor::Tensor keys;
    tensor::Tensor values;
    tensor::Tensor counter;  // what the class keeps on the card: how many tokens, or the window's width
    // Of a layer that waits in host memory.
    tensor::Dims host_keys;
    tensor::Dims host_values;
    DType host_dtype = DType::bf16;
    bool on_host = false;
    // All tokens but those that `keys` and `values` hold.
    QuantisedTokens quantised_keys;
    QuantisedTokens quantised_values;
  };

  std::int64_t width(const Layer& layer) const;
  void grow(Layer& layer, tensor::Tensor& key, tensor::Tensor& value);
  void slide(Layer& layer, tensor::Tensor& key, tensor::Tensor& value);
  void fill(Layer& layer, tensor::Tensor& key, tensor::Tensor& value);
  void overflow(Layer& layer, tensor::Tensor& key, tensor::Tensor& value);
  void roll(Layer& layer, tensor::Tensor& key, tensor::Tensor& value);
  void quantise(Layer& layer, tensor::Tensor& key, tensor::Tensor& value);
  void offload(Layer& layer);
  void prefetch(Layer& layer);
  void jump_quantised(Layer& layer, std::int64_t tokens);
  void make_counter(Layer& layer);

  tensor::Context& context_;
  CacheKind kind_;
  bool fixed_;
  QuantisedCache form_;
  std::int64_t prompt_;   // tokens that are quantised at once
  std::int64_t longest_;  // tokens that the fixed cache has room for
  std::vector<Layer> layers_;
};

}  // namespace ullage::engines::transformers
