#include "engines/pytorch/code_base_modules.h"

namespace ullage::engines::pytorch {

using tensor::Tensor;

Tensor CodeBaseModules::embedding(const model::Embedding& module, Tensor ids) {
  const tensor::Scope named(context(), scope(module.weight));
  return tensor::embedding(parameter(module.weight), std::move(ids));
}

Tensor CodeBaseModules::project(const model::Linear& module, Tensor x) {
  return model::call([&](Tensor h) { return linear(module, std::move(h)); }, std::move(x));
}

Tensor CodeBaseModules::normed(const model::Norm& module, const Tensor& x) {
  return model::call([&](Tensor h) { return norm(module, std::move(h)); }, x);
}

}  // namespace ullage::engines::pytorch
