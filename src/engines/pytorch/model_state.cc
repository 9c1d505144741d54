#include "engines/pytorch/transformers_modules.h"

namespace ullage::engines::pytorch {
namespace {

using tensor::Context;
using tensor::Dims;
using tensor::Tensor;

// "self_attn.q_proj.weight" belongs to the module "self_attn.q_proj".
std::string_view module_name(std::string_view parameter) { return parameter.substr(0, parameter.rfind('.')); }

Dims sizes_of(const model::Parameter& parameter) {
  Dims sizes;
  for (const model::Dimension& dim : parameter.dims) sizes.push_back(dim.size());
  return sizes;
}

}  // namespace

Tensor ModelState::make(Context& context, const model::Parameter& parameter, NameId label, DType dtype) {
  Tensor made = context.make(sizes_of(parameter), dtype);
  context.set_label(made.storage(), label);
  made.impl()->leaf_requires_grad = true;
  made.impl()->is_parameter = true;
  trainable_.push_back(made);
  layers_of_.push_back(context.layer);
  return made;
}

void ModelState::add_globals(Context& context, const model::Architecture& architecture, std::size_t from,
                             std::size_t to, DType dtype) {
  for (std::size_t i = from; i < to; ++i) {
    const model::Parameter& parameter = architecture.parameters[i];
    global_modules_.push_back(context.intern(module_name(parameter.name)));
    globals_.push_back(parameter.tied_to ? globals_[static_cast<std::size_t>(*parameter.tied_to)]
                                         : make(context, parameter, context.intern(parameter.name), dtype));
  }
}

ModelState::ModelState(Context& context, const model::Architecture& architecture, DType dtype)
    : kinds_(architecture.layers) {
  tensor::Restore<memory::Component> component(context.component, memory::Component::parameters);
  std::vector<std::vector<NameId>> labels;
  for (const model::LayerKind& kind : architecture.kinds) {
    auto& modules = kind_modules_.emplace_back();
    auto& kind_labels = labels.emplace_back();
    for (const model::Parameter& parameter : kind.parameters) {
      modules.push_back(context.intern(module_name(parameter.name)));
      kind_labels.push_back(context.intern(parameter.name));
    }
  }
  add_globals(context, architecture, 0, architecture.layers_at, dtype);
  for (std::size_t i = 0; i < architecture.layers.size(); ++i) {
    tensor::Restore<std::int16_t> layer(context.layer, static_cast<std::int16_t>(i));
    context.begin_section(context.layer);
    const std::uint8_t kind = architecture.layers[i];
    auto& made = layers_.emplace_back();
    for (std::size_t k = 0; k < architecture.kinds[kind].parameters.size(); ++k) {
      made.push_back(make(context, architecture.kinds[kind].parameters[k], labels[kind][k], dtype));
    }
    layer_buffers_.push_back(make_buffers(context, architecture.kinds[kind].buffers, dtype));
  }
  context.begin_section(memory::kNoLayer);
  add_globals(context, architecture, architecture.layers_at, architecture.parameters.size(), dtype);
  buffers_ = make_buffers(context, architecture.buffers, dtype);
}

std::vector<Tensor> ModelState::make_buffers(Context& context, const std::vector<model::Buffer>& buffers, DType dtype) {
  tensor::Restore<memory::Component> component(context.component, memory::Component::buffers);
  std::vector<Tensor> made;
  for (const model::Buffer& buffer : buffers) {
    Dims sizes;
    for (const std::int64_t size : buffer.sizes) sizes.push_back(size);
    made.push_back(context.make(sizes, buffer.in_model_dtype ? dtype : buffer.dtype));
    context.set_label(made.back().storage(), context.intern(buffer.name));
  }
  return made;
}

const Tensor& ModelState::parameter(model::ParameterRef ref, std::int64_t layer) const {
  const auto index = static_cast<std::size_t>(ref.index);
  return ref.in_layer ? layers_[static_cast<std::size_t>(layer)][index] : globals_[index];
}

NameId ModelState::module(model::ParameterRef ref, std::int64_t layer) const {
  const auto index = static_cast<std::size_t>(ref.index);
  return ref.in_layer ? kind_modules_[kinds_[static_cast<std::size_t>(layer)]][index] : global_modules_[index];
}

}  // namespace ullage::engines::pytorch
