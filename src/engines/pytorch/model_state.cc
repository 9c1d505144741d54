#include "engines/pytorch/model_state.h"

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

Tensor ModelState::make(const model::Parameter& parameter, NameId label, DType dtype, bool trains) {
  Tensor made = context_.make(sizes_of(parameter), dtype);
  context_.set_label(made.storage(), label);
  made.impl()->is_parameter = true;
  if (!trains) return made;
  made.impl()->leaf_requires_grad = true;
  if (parameter.unused) return made;
  trainable_.push_back(made);
  layers_of_.push_back(context_.layer);
  return made;
}

// A quantised weight is kept as [out, in]. A bias beside it is cast to the type that they compute in.
Tensor ModelState::make_weight(const model::Parameter& parameter, NameId label, const model::ParameterRole& role,
                               std::vector<Quantised>& quantised) {
  if (plan_.base == model::BaseFormat::plain) return make(parameter, label, dtype_, role.trains);
  Quantised& form = quantised.emplace_back();  // empty where the weight stays plain
  if (!role.quantised) {
    const bool cast = role.beside_quantised && plan_.base != model::BaseFormat::int8;
    const DType beside = plan_.base == model::BaseFormat::gptq ? DType::f16 : compute_dtype(options_);
    return make(parameter, label, cast ? beside : dtype_, role.trains);
  }
  const Dims stored = sizes_of(parameter);
  const bool turned = parameter.module == model::ModuleKind::conv1d;
  const Dims shape{stored[turned ? 1 : 0], stored[turned ? 0 : 1]};
  const Tensor& made = make_quantised(form, shape);
  context_.set_label(made.storage(), label);
  for (const Tensor* table : {&form.four.maxima, &form.four.nested_maxima, &form.eight.scales, &form.packed.zeros,
                              &form.packed.scales, &form.packed.group_of_row, &form.blocks.scales}) {
    if (*table) context_.set_label(table->storage(), label);
  }
  return made;
}

// Returns the tensor of its codes.
const Tensor& ModelState::make_quantised(Quantised& form, const Dims& shape) {
  switch (plan_.base) {
    case model::BaseFormat::int8: form.eight = tensor::make_eight_bit(context_, shape); return form.eight.codes;
    case model::BaseFormat::gptq: form.packed = tensor::make_packed(context_, shape, false, DType::f16); break;
    case model::BaseFormat::awq:
      form.packed = tensor::make_packed(context_, shape, true, compute_dtype(options_));
      break;
    case model::BaseFormat::nf4_torchao:
      form.nf4 = tensor::make_nf4(context_, shape, options_.dtype);
      return form.nf4.packed;
    case model::BaseFormat::fp8: form.blocks = tensor::make_block_scaled(context_, shape); return form.blocks.codes;
    default:
      form.four =
          tensor::make_four_bit(context_, shape, quantised_from(options_), plan_.base == model::BaseFormat::nf4_dq);
      form.four.dequantises_first = options_.code != nullptr;
      form.four.keeps_input = options_.code != nullptr && options_.code->keeps_quantised_inputs;
      return form.four.packed;
  }
  return form.packed.codes;
}

Adapter ModelState::make_adapter(const model::ParameterRole& role) {
  const std::vector<model::AdapterPart>& parts = role.adapter;
  Adapter out;
  if (parts.size() == 1) {
    out.scale = make(parts[0].parameter, context_.intern(parts[0].parameter.name), adapter_dtype_, true);
    out.scales_input = role.scales_input;
    return out;
  }
  Tensor* const places[] = {&out.a, &out.b, &out.magnitude};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    *places[i] = make(parts[i].parameter, context_.intern(parts[i].parameter.name), adapter_dtype_, parts[i].trains);
  }
  out.a_module = context_.intern(module_name(parts[0].parameter.name));
  out.b_module = context_.intern(module_name(parts[1].parameter.name));
  return out;
}

void ModelState::add_adapter(std::vector<Adapter>& adapters, const std::vector<model::ParameterRole>& roles,
                             std::size_t i) {
  if (!plan_.adapted || plan_.virtual_tokens) return;
  adapters.resize(roles.size());
  if (!roles[i].adapter_of) return;
  const auto weight = static_cast<std::size_t>(*roles[i].adapter_of);
  adapters[weight] = make_adapter(roles[weight]);
}

void ModelState::add_globals(const model::Architecture& architecture, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) {
    const model::Parameter& parameter = architecture.parameters[i];
    const model::ParameterRole& role = plan_.globals[i];
    global_modules_.push_back(context_.intern(module_name(parameter.name)));
    const NameId label = context_.intern(parameter.name);
    Tensor original;
    if (parameter.tied_to) {
      original = global_originals_[static_cast<std::size_t>(*parameter.tied_to)];
      if (plan_.base != model::BaseFormat::plain) global_quantised_.emplace_back();
    } else {
      original = make_weight(parameter, label, role, global_quantised_);
    }
    global_originals_.push_back(original);
    globals_.push_back(role.copied ? make(parameter, label, dtype_, true) : std::move(original));
    add_adapter(global_adapters_, plan_.globals, i);
  }
}

void ModelState::add_layer(const model::LayerKind& kind, const std::vector<model::ParameterRole>& roles,
                           const std::vector<NameId>& labels) {
  auto& made = layers_.emplace_back();
  auto& adapters = layer_adapters_.emplace_back();
  auto& quantised = layer_quantised_.emplace_back();
  made.reserve(kind.parameters.size());
  for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
    made.push_back(make_weight(kind.parameters[i], labels[i], roles[i], quantised));
    if (roles[i].copied) {
      layer_originals_.push_back(std::move(made.back()));
      made.back() = make(kind.parameters[i], labels[i], dtype_, true);
    }
    add_adapter(adapters, roles, i);
  }
}

std::vector<Tensor> ModelState::make_buffers(const std::vector<model::Buffer>& buffers) {
  tensor::Restore<memory::Component> component(context_.component, memory::Component::buffers);
  std::vector<Tensor> made;
  for (const model::Buffer& buffer : buffers) {
    Dims sizes;
    for (const std::int64_t size : buffer.sizes) sizes.push_back(size);
    made.push_back(context_.make(sizes, buffer.in_model_dtype ? options_.dtype : buffer.dtype));
    context_.set_label(made.back().storage(), context_.intern(buffer.name));
  }
  return made;
}

ModelState::ModelState(Context& context, const model::Architecture& architecture, const model::TuningPlan& plan,
                       const TrainOptions& options)
    : context_(context),
      plan_(plan),
      options_(options),
      dtype_(unquantised_dtype(options)),
      adapter_dtype_(adapter_dtype(options)),
      input_embedding_(architecture.embedding.weight.index),
      decoder_embedding_(architecture.decoder.embedding.weight.index),
      head_(architecture.head.weight.index),
      tower_layers_(architecture.vision ? architecture.encoder_layers : 0),
      kinds_(architecture.layers) {
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
  const auto add_layers = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      tensor::Restore<std::int16_t> layer(context.layer, static_cast<std::int16_t>(i));
      context.begin_section(context.layer);
      const std::uint8_t kind = architecture.layers[static_cast<std::size_t>(i)];
      add_layer(architecture.kinds[kind], plan.kinds[kind], labels[kind]);
      layer_buffers_.push_back(make_buffers(architecture.kinds[kind].buffers));
    }
    context.begin_section(memory::kNoLayer);
  };
  add_globals(architecture, 0, architecture.encoder_at);
  add_layers(0, architecture.encoder_layers);
  add_globals(architecture, architecture.encoder_at, architecture.layers_at);
  add_layers(architecture.encoder_layers, architecture.layer_count());
  add_globals(architecture, architecture.layers_at, architecture.parameters.size());
  if (plan.virtual_tokens) {
    virtual_tokens_ = make(*plan.virtual_tokens, context.intern(plan.virtual_tokens->name), DType::f32, true);
  }
  buffers_ = make_buffers(architecture.buffers);
}

const Tensor& ModelState::parameter(model::ParameterRef ref, std::int64_t layer) const {
  const auto index = static_cast<std::size_t>(ref.index);
  return ref.in_layer ? layers_[static_cast<std::size_t>(layer)][index] : globals_[index];
}

const Adapter* ModelState::adapter(model::ParameterRef weight, std::int64_t layer) const {
  if (!plan_.adapted || plan_.virtual_tokens) return nullptr;
  const auto index = static_cast<std::size_t>(weight.index);
  const Adapter& found =
      weight.in_layer ? layer_adapters_[static_cast<std::size_t>(layer)][index] : global_adapters_[index];
  return found.a || found.scale ? &found : nullptr;
}

const Quantised* ModelState::quantised(model::ParameterRef weight, std::int64_t layer) const {
  if (plan_.base == model::BaseFormat::plain) return nullptr;
  const auto index = static_cast<std::size_t>(weight.index);
  const Quantised& found =
      weight.in_layer ? layer_quantised_[static_cast<std::size_t>(layer)][index] : global_quantised_[index];
  return found ? &found : nullptr;
}

NameId ModelState::module(model::ParameterRef ref, std::int64_t layer) const {
  const auto index = static_cast<std::size_t>(ref.index);
  return ref.in_layer ? kind_modules_[kinds_[static_cast<std::size_t>(layer)]][index] : global_modules_[index];
}

}  // namespace ullage::engines::pytorch
