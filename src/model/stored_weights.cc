#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/bytes.h"
#include "model/quantisation.h"
#include "model/quantisation_formats.h"

namespace ullage::model {
namespace {

std::string without_ending(const std::string& name, std::string_view ending) {
  const bool ends =
      name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
  return ends ? name.substr(0, name.size() - ending.size()) : name;
}

// "model.layers.3.mlp" with "*" in place of the number behind the prefix.
std::string shown(const std::string& name, const std::string& prefix) {
  if (prefix.empty() || !name.starts_with(prefix)) return name;
  const std::size_t end = name.find('.', prefix.size());
  return prefix + "*" + (end == name.npos ? "" : name.substr(end));
}

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t out = 1;
  for (const std::int64_t size : sizes) out = multiply_saturated(out, size);
  return out;
}

class Storing {
 public:
  Storing(const Architecture& architecture, const Quantisation& quantisation, DType dtype)
      : arch_(architecture), quantisation_(quantisation), dtype_(dtype) {}

  std::vector<StoredWeight> run() {
    for_each_parameter(arch_, [&](const Parameter&, const std::string& name, int) {
      if (const std::string module = without_ending(name, ".bias"); module != name) biased_.insert(module);
    });
    for_each_parameter(arch_, [&](const Parameter& parameter, const std::string& name, int layer) {
      if (parameter.tied_to) return;
      const LayerKind* kind = layer < 0 ? nullptr : &arch_.kind_of(layer);
      if (kind != nullptr && is_expert(*kind, parameter)) add_experts(*kind, parameter, name);
      else if (is_linear(parameter)) add_linear(kind, parameter, name);
      else if (parameter.module == ModuleKind::embedding && quantisation_.embeddings_too) add_matrix(parameter, name);
      else add_plain(parameter, name);
    });
    add_buffers(arch_.buffers, "");
    for (std::int64_t layer = 0; layer < arch_.layer_count(); ++layer) {
      const bool encoder = arch_.in_encoder(layer);
      const std::string& prefix = encoder ? arch_.encoder_prefix : arch_.layer_prefix;
      const std::int64_t number = encoder ? layer : layer - arch_.encoder_layers;
      add_buffers(arch_.kind_of(layer).buffers, fmt::format("{}{}.", prefix, number));
    }
    return std::move(out_);
  }

 private:
  static bool is(const LayerKind& kind, ParameterRef ref, const Parameter& parameter) {
    return ref && ref.in_layer && &kind.parameters[static_cast<std::size_t>(ref.index)] == &parameter;
  }

  static bool is_expert(const LayerKind& kind, const Parameter& parameter) {
    const Experts& e = kind.mixture.experts;
    return parameter.dims.size() == 3 && (is(kind, e.gate_up, parameter) || is(kind, e.down, parameter));
  }

  // GPT-2's layers, which store [in, out], among them.
  static bool is_linear(const Parameter& parameter) {
    const bool linear = parameter.module == ModuleKind::linear || parameter.module == ModuleKind::conv1d;
    return linear && parameter.dims.size() == 2;
  }

  // Routers, and the head unless it is asked for, stay as they are.
  bool is_spared(const LayerKind* kind, const Parameter& parameter) const {
    if (kind != nullptr)
      return is(*kind, kind->mixture.router.weight, parameter) ||
             is(*kind, kind->mixture.shared_gate.weight, parameter);
    const ParameterRef head = arch_.head.weight;
    const bool is_head = head && &arch_.parameters[static_cast<std::size_t>(head.index)] == &parameter;
    return is_head && !quantisation_.head_too;
  }

  // What is stored of a module; nullptr: as it is.
  const WeightScheme* scheme_of(const std::string& module, std::int64_t rows, std::int64_t columns) const {
    if (quantisation_.ignored.names(module)) return nullptr;
    for (const Quantisation::Rule& rule : quantisation_.rules) {
      if (!rule.targets.patterns.empty() && !rule.targets.names(module)) continue;
      return can_store(rule.scheme, rows, columns) ? &rule.scheme : nullptr;
    }
    return nullptr;
  }

  // T5PreTrainedModel._keep_in_fp32_modules, which transformers' quantizer_bnb_4bit.py and _8bit.py spare.
  bool stays_fp32(const std::string& name) const {
    return arch_.family == "t5" && quantisation_.name == "bitsandbytes" && name.ends_with(".wo.weight");
  }

  void add_linear(const LayerKind* kind, const Parameter& parameter, const std::string& name) {
    if (stays_fp32(name))
      return push(name, std::string(name_of(DType::f32)), parameter.elements(), 1,
                  {plain_part("", parameter.elements(), DType::f32)});
    if (is_spared(kind, parameter)) return add_plain(parameter, name);
    add_matrix(parameter, name);
  }

  void add_matrix(const Parameter& parameter, const std::string& name) {
    const std::string module = without_ending(name, ".weight");
    const bool turned = parameter.module == ModuleKind::conv1d;
    const std::int64_t rows = parameter.dims[turned ? 1 : 0].size();
    const std::int64_t columns = parameter.dims[turned ? 0 : 1].size();
    const WeightScheme* scheme = scheme_of(module, rows, columns);
    if (scheme == nullptr) return add_plain(parameter, name);
    push(module, scheme->name, parameter.elements(), 1,
         stored_matrix(*scheme, rows, columns, dtype_, biased_.contains(module)));
  }

  // Published files hold a matrix for each expert and part.
  void add_experts(const LayerKind& kind, const Parameter& parameter, const std::string& name) {
    const Experts& experts = kind.mixture.experts;
    std::int64_t rows = parameter.dims[1].size();
    std::int64_t columns = parameter.dims[2].size();
    if (experts.stored_in_out) std::swap(rows, columns);
    const Dimension& out = parameter.dims[experts.stored_in_out ? 2 : 1];
    const bool first = is(kind, experts.gate_up, parameter);
    const bool two = first && out.parts.size() == 2;
    const WeightScheme* scheme = scheme_of(without_ending(name, ".weight"), rows, columns);
    if (scheme == nullptr) {
      // Names of single experts, as lists of exceptions and targets have them.
      scheme = scheme_of(expert_name(name, two ? "gate_proj" : ""), two ? rows / 2 : rows, columns);
    }
    if (scheme == nullptr || quantisation_.ignored.names(without_ending(name, ".weight")))
      return add_plain(parameter, name);
    const std::int64_t count = experts.count;
    const auto add = [&](const std::string& module, std::int64_t height) {
      push(module, scheme->name, height * columns, count, stored_matrix(*scheme, height, columns, dtype_));
    };
    if (!two) return add(expert_name(name, ""), rows);
    add(expert_name(name, "gate_proj"), rows / 2);
    add(expert_name(name, "up_proj"), rows / 2);
  }

  // "…experts.gate_up_proj" as "…experts.*.gate_proj".
  static std::string expert_name(const std::string& name, std::string_view part) {
    const std::string module = without_ending(name, ".weight");
    const std::size_t dot = module.rfind('.');
    return fmt::format("{}.*.{}", module.substr(0, dot), part.empty() ? module.substr(dot + 1) : std::string(part));
  }

  void add_plain(const Parameter& parameter, const std::string& name) {
    push(name, std::string(name_of(dtype_)), parameter.elements(), 1, {plain_part("", parameter.elements(), dtype_)});
  }

  void add_buffers(const std::vector<Buffer>& buffers, const std::string& at) {
    for (const Buffer& buffer : buffers) {
      if (!buffer.persistent) continue;
      const DType type = buffer.in_model_dtype ? dtype_ : buffer.dtype;
      const std::int64_t elements = product(buffer.sizes);
      push(at + buffer.name, std::string(name_of(type)), 0, 1, {plain_part("", elements, type)});
    }
  }

  void push(const std::string& name, const std::string& scheme, std::int64_t elements, std::int64_t copies,
            std::vector<WeightPart> parts) {
    std::string pattern = shown(name, arch_.layer_prefix);
    if (pattern == name) pattern = shown(name, arch_.encoder_prefix);
    std::int64_t bytes = 0;
    for (const WeightPart& part : parts) bytes = add_saturated(bytes, part.bytes);
    const auto [at, is_new] = seen_.try_emplace({pattern, scheme, elements, bytes}, out_.size());
    if (is_new) out_.push_back({pattern, scheme, 0, elements, std::move(parts)});
    out_[at->second].copies += copies;
  }

  const Architecture& arch_;
  const Quantisation& quantisation_;
  DType dtype_;
  std::set<std::string> biased_;  // modules with a bias
  std::vector<StoredWeight> out_;
  std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t>, std::size_t> seen_;
};

}  // namespace

std::int64_t StoredWeight::bytes() const {
  std::int64_t out = 0;
  for (const WeightPart& part : parts) out = add_saturated(out, part.bytes);
  return out;
}

std::vector<StoredWeight> stored_weights(const Architecture& architecture, const Quantisation& quantisation,
                                         DType dtype) {
  return Storing(architecture, quantisation, dtype).run();
}

}  // namespace ullage::model
