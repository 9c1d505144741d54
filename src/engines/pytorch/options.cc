#include "engines/pytorch/options.h"

#include "base/bytes.h"

namespace ullage::engines::pytorch {

tensor::Policy policy_of(const TrainOptions& options) {
  switch (options.kernels) {
    case Kernels::cuda: return tensor::cuda_policy(options.card);
    case Kernels::cuda_traced: return tensor::cuda_traced_policy();
    case Kernels::cpu: return tensor::cpu_policy();
  }
  return tensor::cuda_policy(options.card);
}

OptimizerImpl usual_impl(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adafactor:
    case Optimizer::muon: return OptimizerImpl::loop;
    case Optimizer::adamw_8bit:
    case Optimizer::paged_adamw_8bit:
    case Optimizer::adamw_4bit:
    case Optimizer::adamw_fp8: return OptimizerImpl::fused;
    default: return OptimizerImpl::foreach;
  }
}

bool has_impl(Optimizer optimizer, OptimizerImpl impl) {
  switch (optimizer) {
    case Optimizer::rmsprop:
    case Optimizer::adafactor:
    case Optimizer::lion: return impl != OptimizerImpl::fused;
    // One way each: a loop, or a kernel for each parameter.
    case Optimizer::muon:
    case Optimizer::adamw_8bit:
    case Optimizer::paged_adamw_8bit:
    case Optimizer::adamw_4bit:
    case Optimizer::adamw_fp8: return impl == usual_impl(optimizer);
    default: return true;
  }
}

DType compute_dtype(const TrainOptions& options) { return options.autocast.value_or(options.dtype); }

DType unquantised_dtype(const TrainOptions& options) { return options.tuning.prepared ? DType::f32 : options.dtype; }

DType quantised_from(const TrainOptions& options) {
  if (options.code != nullptr) return DType::f16;  // what Fabric quantises from (plugins/precision/bitsandbytes.py)
  return options.tuning.prepared ? compute_dtype(options) : options.dtype;
}

DType adapter_dtype(const TrainOptions& options) {
  if (options.code != nullptr) return options.dtype;
  const bool fp32 = options.lora_in_fp32 || options.tuning.base != model::BaseFormat::plain;
  return fp32 ? DType::f32 : options.dtype;
}

std::int64_t parameter_bytes(const model::ParameterTotals& totals, const TrainOptions& options) {
  const std::int64_t plain = totals.parameters - totals.in_adapters - totals.quantised - totals.cast_biases;
  return multiply_saturated(plain, size_of(unquantised_dtype(options))) + totals.quantised_bytes +
         totals.typed_scales * size_of(options.dtype) + totals.cast_biases * size_of(compute_dtype(options)) +
         totals.in_adapters * size_of(adapter_dtype(options));
}

bool takes_scale(const TrainOptions& options) {
  switch (options.optimizer) {
    case Optimizer::adamw:
    case Optimizer::adam:
    case Optimizer::sgd:
    case Optimizer::sgd_momentum:
    case Optimizer::adagrad: return options.optimizer_impl == OptimizerImpl::fused;
    default: return false;
  }
}

}  // namespace ullage::engines::pytorch
