// Masks as masking_utils.py (transformers 5.12) makes them beside a cache and a mask of which tokens count.
#include "engines/transformers/generating_modules.h"

#include "engines/pytorch/causal_mask.h"

namespace ullage::engines::transformers {

namespace t = ullage::tensor;
using t::Op;
using t::Tensor;

// _ignore_causal_mask_sdpa: that no token is padding is asked for, and so it is.
bool GeneratingModules::skips(const Tensor& counted, std::optional<std::int64_t> window,
                              const KeyValueCache::MaskSizes& sizes, std::int64_t seq) {
  Tensor seen = counted;
  Tensor indices;
  if (counted.size(1) > sizes.keys) {
    indices = t::empty(context(), Op::arange, {sizes.keys}, DType::i64);
    seen = t::empty(context(), Op::index, {counted.size(0), sizes.keys}, DType::boolean);
  }
  if (seq > 1 && sizes.keys != seq) return false;
  if (window && sizes.keys >= *window) return false;
  t::empty(context(), Op::compare, {}, DType::boolean);
  return true;
}

Tensor GeneratingModules::make_mask(std::optional<std::int64_t> window, std::int64_t batch, std::int64_t seq,
                                    DType dtype, model::MaskSource source) {
  const t::Scope named(context(), context().intern("causal_mask"));
  Tensor counted = t::to(counts_, DType::boolean);
  const KeyValueCache::MaskSizes sizes = cache_.mask_sizes(window.has_value(), seq);
  const Tensor given = counted;
  if (sizes.keys + sizes.offset > counted.size(1))
    counted = t::empty(context(), Op::pad, {batch, sizes.keys + sizes.offset}, DType::boolean);
  if (is_flash()) {  // flash_attention_mask: without padding there is none
    t::empty(context(), Op::compare, {}, DType::boolean);
    return {};
  }
  const bool eager = makes_eager_mask(source);
  if (!eager && !fixed_ && !source.more_functions && skips(counted, window, sizes, seq)) return {};
  source.padding = counted;
  Tensor mask = pytorch::allowed_keys(context(), window, source, {batch, seq, sizes.keys});
  if (!eager) return t::expand(std::move(mask), {batch, 1, seq, sizes.keys});
  counted.reset();  // padded in the function that makes the mask, which has returned
  source.padding.reset();
  const Tensor zero = t::empty(context(), Op::cast, {}, dtype);
  const Tensor lowest = t::empty(context(), Op::empty, {}, dtype);
  return t::empty(context(), Op::where, {batch, 1, seq, sizes.keys}, dtype);
}

Tensor GeneratingModules::experts(const model::Experts& module, Tensor x, Tensor chosen, Tensor weights) {
  model::Experts run = module;
  if (decodes_ && run.run == model::ExpertsRun::grouped) run.run = model::ExpertsRun::batched;
  return TransformersModules::experts(run, std::move(x), std::move(chosen), std::move(weights));
}

Tensor GeneratingModules::causal_mask(std::optional<std::int64_t> window, const Tensor& hidden,
                                      model::MaskSource source) {
  if (masks_.empty()) return make_mask(window, hidden.size(0), hidden.size(1), hidden.dtype(), source);
  const std::size_t at = next_mask_;
  next_mask_ = (next_mask_ + 1) % masks_.size();
  return masks_[at];
}

}  // namespace ullage::engines::transformers
