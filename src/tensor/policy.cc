#include "tensor/policy.h"

namespace ullage::tensor {
namespace {

constexpr std::int64_t kCudaGranularity = 512;

}  // namespace

Policy cuda_policy(Capability card) { return {"cuda", true, false, kCudaGranularity, card, attention_on_cuda}; }
Policy cuda_traced_policy() { return {"cuda-traced", true, true, kCudaGranularity, {}, attention_traced}; }
Policy cpu_policy() { return {"cpu", false, true, 1, {}, attention_on_cpu}; }

}  // namespace ullage::tensor
