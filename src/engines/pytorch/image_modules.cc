// Modules of image networks, as torch.nn has them.
#include "engines/pytorch/transformers_modules.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Tensor;

Tensor TransformersModules::conv2d(const model::Conv2d& module, Tensor x) {
  const t::Scope named(context_, scope(module.weight));
  Tensor bias = optional_parameter(module.bias);
  return t::conv2d(std::move(x), parameter(module.weight), std::move(bias),
                   {module.stride, module.padding, module.groups});
}

Tensor TransformersModules::conv1d(const model::Conv1d& module, Tensor x) {
  const t::Scope named(context_, scope(module.weight));
  return t::conv1d(std::move(x), parameter(module.weight), parameter(module.bias), {module.stride, module.padding, 1});
}

// The counter of batches is raised in place.
Tensor TransformersModules::batch_norm2d(const model::BatchNorm2d& module, Tensor x) {
  const t::Scope named(context_, scope(module.weight));
  return t::batch_norm(std::move(x), parameter(module.weight), parameter(module.bias),
                       state_.buffer(module.running_mean), state_.buffer(module.running_var));
}

Tensor TransformersModules::classification_loss(Tensor logits, Tensor labels) {
  const t::Scope named(context_, context_.intern("loss"));
  return t::cross_entropy(std::move(logits), std::move(labels));
}

}  // namespace ullage::engines::pytorch
