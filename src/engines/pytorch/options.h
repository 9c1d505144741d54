// What the user sets for a training step on one GPU with plain PyTorch. Names follow the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"
#include "engines/pytorch/code_base.h"
#include "memory/allocator_settings.h"
#include "model/tuning.h"
#include "tensor/policy.h"

namespace ullage::engines::pytorch {

enum class Kernels : std::uint8_t { cuda, cuda_traced, cpu };
enum class Optimizer : std::uint8_t {
  adamw,
  adam,
  sgd,
  sgd_momentum,
  adagrad,
  rmsprop,
  adafactor,
  lion,
  muon,
  adamw_8bit,
  paged_adamw_8bit,
  adamw_4bit,
  adamw_fp8,
  none
};
enum class OptimizerImpl : std::uint8_t { foreach, fused, loop };
enum class Recompute : std::uint8_t { none, full };
// flash: the functions of the flash-attn package, version 2.
enum class AttentionImpl : std::uint8_t { sdpa, eager, flash };
// chunked: some tokens at a time; fused: head and loss as one, by Liger's kernel; none: the sum of the logits.
enum class Loss : std::uint8_t { full, chunked, fused, none };
enum class Step : std::uint8_t { first, steady, forward };

// How transformers makes the loss of the next token, by version (loss_version.h).
enum class LossForm : std::uint8_t {
  padded,    // logits in fp32 inside of the loss; the labels are padded and cut
  sliced,    // the same, but logits are cut, which copies them
  kept,      // logits in fp32 from the model on, then cut
  own_type,  // cut, and lost in the model's own type
};

struct TrainOptions {
  Kernels kernels = Kernels::cuda;
  memory::TorchVersion torch;  // what differs between releases is in torch_version.h
  tensor::Capability card;     // of the GPU, for kernels that depend on it
  std::int64_t micro_batch = 1;
  std::int64_t seq_len = 2048;        // tokens of a sequence; ignored for images
  std::int64_t image_size = 224;      // pixels of a side; ignored for text
  std::int64_t image_max_pixels = 0;  // of an image after resizing, where the model resizes; 0: its processor's
  std::int64_t grad_accum = 1;        // micro-batches of a step
  DType dtype = DType::bf16;          // weights, gradients, states and, without autocast, computation
  std::optional<DType> autocast;      // type of the operators that autocast lowers; the step's forward runs under it
  Optimizer optimizer = Optimizer::adamw;
  OptimizerImpl optimizer_impl = OptimizerImpl::foreach;
  bool optimizer_in_backward = false;  // each parameter is updated as soon as its gradient is there
  Recompute recompute = Recompute::none;
  bool recompute_reentrant = false;
  bool recompute_vision = false;  // the tower's layers, whatever the text model does
  AttentionImpl attention = AttentionImpl::sdpa;
  Loss loss = Loss::full;
  LossForm loss_form = LossForm::padded;
  Step step = Step::steady;
  model::Tuning tuning;
  bool lora_in_fp32 = true;  // adapters; those of quantised weights always are; else in the weights' type
  double lora_dropout = 0;
  double clip_grad = 0;  // largest norm of the gradients; 0: no clipping
  bool grad_scaler = false;
  bool hf_trainer = false;           // the loop is that of transformers' Trainer
  std::int64_t llama_adapter = 0;    // version of LLaMA-Adapter that another code base trains; 0: none
  bool packed_kernel = false;        // GPTQ's and AWQ's products unpack weights inside of a kernel, as engines do
  bool compile = false;              // torch.compile, of what the code base compiles
  bool offload_activations = false;  // what is saved for backward waits on the host (tensor/offload.h)
  const Choices* code = nullptr;     // whose module code runs; null: the transformers library's

  // The type of matrix products and attention.
  DType computed_in() const { return autocast.value_or(dtype); }
};

tensor::Policy policy_of(const TrainOptions& options);

// What an optimizer runs as by itself on a GPU, and whether it can run as `impl`.
OptimizerImpl usual_impl(Optimizer optimizer);
bool has_impl(Optimizer optimizer, OptimizerImpl impl);
// The type that quantised weights compute in, and that of what is not quantised.
DType compute_dtype(const TrainOptions& options);
DType unquantised_dtype(const TrainOptions& options);
// The type that weights had before they were quantised; under autocast, prepared models are loaded in autocast's.
DType quantised_from(const TrainOptions& options);
// PEFT casts adapters to their weight's type only where that is a floating one.
DType adapter_dtype(const TrainOptions& options);
// All of them, in bytes, without an allocator's rounding.
std::int64_t parameter_bytes(const model::ParameterTotals& totals, const TrainOptions& options);
// Whether the optimizer is one of torch.optim's fused kernels, which unscale gradients by themselves.
bool takes_scale(const TrainOptions& options);

}  // namespace ullage::engines::pytorch
