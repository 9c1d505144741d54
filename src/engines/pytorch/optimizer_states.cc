#include "engines/pytorch/optimizer_states.h"

#include "tensor/ops.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Dims;
using t::Op;
using t::Tensor;

namespace {

// bitsandbytes (optim/optimizer.py): smaller tensors keep fp32 states, larger ones of a paged optimizer lie in managed
// memory, which is not the allocator's.
constexpr std::int64_t kSmallest8Bit = 4096;
constexpr std::int64_t kSmallestPaged = 100'000;
constexpr std::int64_t kBlock8Bit = 256;
constexpr std::int64_t kCodes8Bit = 256;
// torchao (optim/adam.py, subclass_4bit.py, subclass_fp8.py)
constexpr std::int64_t kSmallestTorchao = 4096;
constexpr std::int64_t kBlock4Bit = 128;
constexpr std::int64_t kBlockFp8 = 256;
constexpr std::int64_t kCodes4Bit = 16;

Dims with_one(Dims sizes, int dim) {
  sizes[dim] = 1;
  return sizes;
}

std::int64_t blocks(std::int64_t elements, std::int64_t block) { return (elements + block - 1) / block; }

}  // namespace

// A few labels for thousands of states.
NameId StateMaker::name_of(std::string_view label) {
  for (const auto& [text, name] : names_) {
    if (text == label.data()) return name;
  }
  return names_.emplace_back(label.data(), context_.intern(label)).second;
}

void StateMaker::add(Tensor state, std::string_view label) {
  context_.set_label(state.storage(), name_of(label));
  made_.push_back(std::move(state));
}

void StateMaker::add_like(const Tensor& parameter, std::string_view label) { add(t::zeros_like(parameter), label); }

// The step counter is a host tensor unless the fused kernel reads it, or a code base keeps it on the card; with CPU
// kernels all is host memory.
void StateMaker::add_counter() {
  const bool decoupled = options_.code != nullptr && options_.code->decoupled_decay;
  if (decoupled || options_.optimizer_impl == OptimizerImpl::fused || !context_.policy().cuda)
    add(t::empty(context_, Op::zeros, {}, DType::f32), "step");
}

void StateMaker::add_adam(const Tensor& parameter) {
  add_counter();
  add_like(parameter, "exp_avg");
  add_like(parameter, "exp_avg_sq");
}

// The second moment of a matrix as a row and a column, that of a vector in full.
void StateMaker::add_adafactor(const Tensor& parameter) {
  add_counter();
  if (parameter.dim() <= 1) return add_like(parameter, "variance");
  add(t::empty(context_, Op::zeros, with_one(parameter.sizes(), -1), parameter.dtype()), "row_var");
  add(t::empty(context_, Op::zeros, with_one(parameter.sizes(), -2), parameter.dtype()), "col_var");
}

void StateMaker::add_8bit(const Tensor& parameter) {
  const bool small = parameter.numel() < kSmallest8Bit;
  const bool paged = options_.optimizer == Optimizer::paged_adamw_8bit && parameter.numel() >= kSmallestPaged;
  if (!small && (tables_.empty() || options_.optimizer_in_backward)) {
    for (int i = 0; i < 2; ++i) {
      tables_.push_back(t::empty(context_, Op::copy, {kCodes8Bit}, DType::f32));
      context_.set_label(tables_.back().storage(), context_.intern("qmap"));
    }
  }
  for (const std::string_view label : {"state1", "state2"}) {
    if (!paged) add(t::empty(context_, Op::zeros, parameter.sizes(), small ? DType::f32 : DType::u8), label);
  }
  if (small) return;
  for (const std::string_view label : {"absmax1", "absmax2"}) {
    add(t::empty(context_, Op::zeros, {blocks(parameter.numel(), kBlock8Bit)}, DType::f32), label);
  }
}

// Codes of four or eight bits, a scale for each block, and the table of four-bit codes.
void StateMaker::add_codes(const Tensor& parameter, std::int64_t block, std::string_view label) {
  const bool four = block == kBlock4Bit;
  add(t::empty(context_, Op::zeros, {four ? parameter.numel() / 2 : parameter.numel()}, DType::u8), label);
  add(t::empty(context_, Op::zeros, {parameter.numel() / block}, DType::f32), "scale");
  if (four) add(t::empty(context_, Op::copy, {kCodes4Bit}, DType::f32), "qmap");
}

void StateMaker::add_torchao(const Tensor& parameter, std::int64_t block) {
  const bool coded = parameter.numel() >= kSmallestTorchao && parameter.numel() % block == 0;
  for (const std::string_view label : {"exp_avg", "exp_avg_sq"}) {
    if (coded) add_codes(parameter, block, label);
    else add_like(parameter, label);
  }
}

std::vector<Tensor> StateMaker::make(const Tensor& parameter, bool muon) {
  made_.clear();
  made_.reserve(3);
  switch (options_.optimizer) {
    case Optimizer::adamw:
    case Optimizer::adam: add_adam(parameter); break;
    case Optimizer::sgd_momentum: add(t::clone(parameter, parameter.strides()), "momentum_buffer"); break;
    case Optimizer::adagrad:
      add_counter();
      add_like(parameter, "sum");
      break;
    case Optimizer::rmsprop:
      add_counter();
      add_like(parameter, "square_avg");
      break;
    case Optimizer::adafactor: add_adafactor(parameter); break;
    case Optimizer::lion: add_like(parameter, "exp_avg"); break;
    case Optimizer::muon:
      if (muon) add_like(parameter, "momentum_buffer");
      else add_adam(parameter);
      break;
    case Optimizer::adamw_8bit:
    case Optimizer::paged_adamw_8bit: add_8bit(parameter); break;
    case Optimizer::adamw_4bit: add_torchao(parameter, kBlock4Bit); break;
    case Optimizer::adamw_fp8: add_torchao(parameter, kBlockFp8); break;
    case Optimizer::sgd:
    case Optimizer::none: break;
  }
  return std::move(made_);
}

}  // namespace ullage::engines::pytorch
