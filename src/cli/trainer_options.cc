#include "cli/trainer_options.h"

#include <fmt/core.h>

#include <string>

#include "engines/pytorch/loss_version.h"
#include "engines/pytorch/torch_version.h"

namespace ullage::cli {
namespace {

using engines::pytorch::Optimizer;
using engines::pytorch::OptimizerImpl;
using engines::pytorch::TrainOptions;

bool is_hf(const Arguments& arguments) { return arguments.text("--trainer", "none") == "hf"; }

// torch.amp.GradScaler refuses to unscale gradients of fp16.
Expected<void> check_fp16(const Arguments& arguments) {
  if (arguments.text("--precision") != "fp16") return {};
  const bool in_fp32 = arguments.text("--lora-dtype", "fp32") == "fp32" || arguments.has("--quantize-base");
  if (arguments.has("--lora") && in_fp32 && !arguments.has("--modules-to-save")) return {};
  return fail(ErrorCode::invalid_argument, "--trainer",
              "hf scales gradients, and PyTorch unscales none of fp16; use --precision amp-fp16 or bf16");
}

// TrainingArguments.optim where nothing is said, between torch's AdamW and its fused one.
bool takes_fused(const Arguments& arguments, memory::TorchVersion torch) {
  const auto transformers =
      engines::pytorch::parse_version(arguments.text("--transformers", engines::pytorch::kTransformers));
  return engines::pytorch::trainer_takes_fused(torch) &&
         (!transformers || *transformers >= engines::pytorch::TransformersVersion{4, 54});
}

}  // namespace

Expected<void> check_trainer(const Arguments& arguments, const model::Architecture& architecture) {
  if (!is_hf(arguments)) return {};
  const std::string code = arguments.text("--modules", "transformers");
  if (code != "transformers")
    return fail(ErrorCode::invalid_argument, "--trainer", fmt::format("{} has a loop of its own; leave it out", code));
  if (architecture.is_module_tree())
    return fail(ErrorCode::invalid_argument, "--trainer",
                fmt::format("{} returns no loss, which hf asks for; leave it out", architecture.name));
  if (architecture.input != model::InputKind::tokens)
    return not_in_this_version("--trainer", "hf with images or sound alone");
  if (arguments.text("--kernels") == "cpu") return not_in_this_version("--trainer", "hf with --kernels cpu");
  if (arguments.text("--loss") == "none")
    return fail(ErrorCode::invalid_argument, "--trainer", "hf needs a loss; leave --loss none out");
  const std::string precision = arguments.text("--precision", "bf16");
  if (arguments.text("--loss") == "fused" && precision != "fp32" && precision != "pure-bf16")
    return not_in_this_version("--loss", "fused under autocast");
  if (arguments.text("--optimizer") == "none")
    return fail(ErrorCode::invalid_argument, "--trainer", "hf always has an optimizer; leave --optimizer none out");
  if (arguments.has("--optimizer-in-backward"))
    return fail(ErrorCode::invalid_argument, "--trainer",
                "hf takes the norm of all gradients first; leave --optimizer-in-backward out");
  return check_fp16(arguments);
}

void apply_trainer(const Arguments& arguments, TrainOptions& options) {
  const engines::pytorch::Choices* code = options.code;
  const std::string precision = arguments.text("--precision", "bf16");
  const bool half = precision == "bf16" || precision == "fp16";
  options.hf_trainer = is_hf(arguments);
  if (half && (options.hf_trainer || (code != nullptr && code->autocasts))) options.autocast = options.dtype;
  if (code != nullptr && code->decoupled_decay) options.optimizer_impl = OptimizerImpl::loop;
  if (!options.hf_trainer && (code == nullptr || !code->clips)) return;
  const bool backward = options.step != engines::pytorch::Step::forward;
  if (backward && options.autocast == DType::f16) options.grad_scaler = true;
  if (backward && !options.optimizer_in_backward && !arguments.has("--clip-grad")) options.clip_grad = 1;
  const bool fuses = options.hf_trainer ? takes_fused(arguments, options.torch) : code->fuses;
  if (options.optimizer == Optimizer::adamw && !arguments.has("--optimizer-impl") && fuses)
    options.optimizer_impl = OptimizerImpl::fused;
}

}  // namespace ullage::cli
