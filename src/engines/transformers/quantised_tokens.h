// What QuantizedCache (transformers 5.12, cache_utils.py: QuantizedLayer) keeps of a layer's keys or values: all tokens
// but the last few in codes of a few bits with a scale and a zero for each group, by one of two libraries.
//
// Sources: optimum-quanto 0.2.7 (tensor/optimizers, tensor/weights/qbits.py, tensor/packed.py, library), with its
// PyTorch operators, as they run where its CUDA extension is not compiled; hqq 0.2.8 (core/quantize.py,
// core/optimize.py, core/bitpack.py), whose solver stops where the error grows: two of its steps are taken.
#pragma once

#include "engines/transformers/options.h"
#include "tensor/ops.h"

namespace ullage::engines::transformers {

class QuantisedTokens {
 public:
  // Of [batch, heads, tokens, dim] along `axis`; what was kept before is let go of behind it.
  void take(tensor::Tensor x, const QuantisedCache& form, int axis);
  // As if it had taken so many tokens.
  void jump_to(tensor::Context& context, std::int64_t tokens);
  // All that it took, in the type that it had.
  tensor::Tensor whole() const;

  const tensor::Dims& sizes() const { return sizes_; }
  DType dtype() const { return dtype_; }

 private:
  struct State {
    tensor::Tensor codes;
    tensor::Tensor scales;
    tensor::Tensor zeros;
  };

  State by_quanto(const tensor::Tensor& x) const;
  State by_hqq(const tensor::Tensor& x) const;
  tensor::Tensor whole_of_quanto() const;
  tensor::Tensor whole_of_hqq() const;

  QuantisedCache form_;
  int axis_ = 0;
  tensor::Dims sizes_;
  DType dtype_ = DType::bf16;
  State state_;
};

// Bytes of so many numbers, with the scale and the zero of each group.
std::int64_t quantised_bytes(const QuantisedCache& form, std::int64_t numbers, DType dtype);

// What the library or this version of ours refuses: bits, axes, groups. `where`: the option.
Expected<void> check_quantised_cache(const QuantisedCache& form, std::string_view where);
// Whether [batch, heads, tokens, dim] fills groups and whole codes along an axis; the libraries refuse what does not.
bool fills_groups(const QuantisedCache& form, int axis, const tensor::Dims& sizes);

}  // namespace ullage::engines::transformers
