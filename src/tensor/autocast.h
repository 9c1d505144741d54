// Autocast: inside of a region, operators of certain lists cast what they are given (torch/amp/autocast_mode.py,
// ATen/autocast_mode.{h,cpp}).
//
// An operator that stands in a list of PyTorch's begins with one line, behind the locals that hold its arguments:
//
//   if (context.autocast.enabled) return in_low_precision(context, linear, x, weight, bias);   // lower_precision_fp
//   if (context.autocasts_on_cuda()) return in_fp32(context, rsqrt, x);                        // fp32, CUDA's list
//   alone
//
// The arguments stand in the order of PyTorch's signature. The operator is called again with what the casts made, with
// autocast off, as the dispatcher's wrapper does: the casts live until it has returned. Operators of
// fp32_set_opt_dtype (softmax, log_softmax, sum, cumsum…) take fp32 as their dtype where none was given; those of
// `promote`, and all that stand in no list, promote by themselves.
#pragma once

#include <utility>

#include "tensor/context.h"

namespace ullage::tensor {

// torch.autocast(…): sets the state for its lifetime. Leaving the outermost region drops the cache of casts.
class AutocastRegion {
 public:
  AutocastRegion(Context& context, Autocast state);
  ~AutocastRegion();
  AutocastRegion(const AutocastRegion&) = delete;
  AutocastRegion& operator=(const AutocastRegion&) = delete;

 private:
  Context& context_;
  Autocast before_;
};

// One argument as the wrappers of the two lists cast it; empty tensors, integers and fp64 pass. Casts of fp32 leaves
// that need a gradient, to autocast's type, are made once for each outermost region.
Tensor cast_to_low_precision(const Tensor& x);
Tensor cast_to_fp32(const Tensor& x);

template <Tensor (*kCast)(const Tensor&), class Run, std::size_t... kIndex>
Tensor run_with_casts(Context& context, Run run, const Tensor* const (&arguments)[sizeof...(kIndex)],
                      std::index_sequence<kIndex...> /*indices*/) {
  constexpr std::size_t kLast = sizeof...(kIndex) - 1;
  // Evaluated from the last argument to the first, and let go the other way round.
  Tensor casts[kLast + 1];
  for (std::size_t i = 0; i <= kLast; ++i) casts[i] = kCast(*arguments[kLast - i]);
  const Restore<bool> off(context.autocast.enabled, false);
  return run(casts[kLast - kIndex]...);
}

template <class Run, class... Arguments>
Tensor in_low_precision(Context& context, Run run, const Arguments&... arguments) {
  const Tensor* const list[] = {&arguments...};
  return run_with_casts<cast_to_low_precision>(context, run, list, std::index_sequence_for<Arguments...>{});
}

template <class Run, class... Arguments>
Tensor in_fp32(Context& context, Run run, const Arguments&... arguments) {
  const Tensor* const list[] = {&arguments...};
  return run_with_casts<cast_to_fp32>(context, run, list, std::index_sequence_for<Arguments...>{});
}

}  // namespace ullage::tensor
