#include "model/architecture.h"

#include <algorithm>

#include "base/bytes.h"

namespace ullage::model {

std::int64_t Dimension::size() const {
  std::int64_t total = 0;
  for (const AxisPart& part : parts) total += part.count * part.unit;
  return total;
}

std::int64_t Parameter::elements() const {
  std::int64_t total = 1;
  for (const Dimension& dim : dims) total = multiply_saturated(total, dim.size());
  return total;
}

std::int64_t Architecture::period() const {
  if (layers.empty()) return 0;
  const std::size_t n = layers.size();
  for (std::size_t p = 1; p <= n / 2; ++p) {
    if (std::equal(layers.begin() + static_cast<std::ptrdiff_t>(p), layers.end(), layers.begin())) {
      return static_cast<std::int64_t>(p);
    }
  }
  return n == 1 ? 1 : 0;
}

std::int64_t parameter_count(const Architecture& architecture) {
  std::int64_t total = 0;
  for (const Parameter& parameter : architecture.parameters) {
    if (!parameter.tied_to) total += parameter.elements();
  }
  std::vector<std::int64_t> by_kind;
  for (const LayerKind& kind : architecture.kinds) {
    std::int64_t sum = 0;
    for (const Parameter& parameter : kind.parameters) sum += parameter.elements();
    by_kind.push_back(sum);
  }
  for (const std::uint8_t kind : architecture.layers) total += by_kind[kind];
  return total;
}

std::int64_t active_parameter_count(const Architecture& architecture) {
  std::vector<std::int64_t> idle;
  for (const LayerKind& kind : architecture.kinds) {
    const Experts& experts = kind.mixture.experts;
    std::int64_t of_experts = 0;
    for (const ParameterRef ref : {experts.gate_up, experts.gate_up_bias, experts.down, experts.down_bias}) {
      if (ref) of_experts += kind.parameters[static_cast<std::size_t>(ref.index)].elements();
    }
    idle.push_back(experts.count == 0 ? 0 : of_experts / experts.count * (experts.count - kind.mixture.top_k));
  }
  std::int64_t total = parameter_count(architecture);
  for (const std::uint8_t kind : architecture.layers) total -= idle[kind];
  return total;
}

ParameterRef ParameterList::add(std::string name, std::vector<Dimension> dims) {
  list_.push_back({std::move(name), std::move(dims), std::nullopt});
  return {static_cast<std::int32_t>(list_.size() - 1), in_layer_};
}

ParameterRef ParameterList::add_weight(std::string name, std::vector<Dimension> dims, ModuleKind module) {
  const ParameterRef made = add(std::move(name), std::move(dims));
  list_.back().module = module;
  return made;
}

Linear ParameterList::linear(const std::string& name, const Dimension& in, const Dimension& out, bool bias) {
  Linear made;
  made.weight = add_weight(name + ".weight", {out, in}, ModuleKind::linear);
  if (bias) made.bias = add(name + ".bias", {out});
  return made;
}

Linear ParameterList::conv1d(const std::string& name, const Dimension& in, const Dimension& out) {
  Linear made;
  made.stored_in_out = true;
  made.weight = add_weight(name + ".weight", {in, out}, ModuleKind::conv1d);
  made.bias = add(name + ".bias", {out});
  return made;
}

Norm ParameterList::rms_norm(const std::string& name, const Dimension& size) {
  return {NormKind::rms, add(name + ".weight", {size}), {}};
}

Norm ParameterList::layer_norm(const std::string& name, const Dimension& size) {
  Norm made;
  made.kind = NormKind::layer;
  made.weight = add(name + ".weight", {size});
  made.bias = add(name + ".bias", {size});
  return made;
}

Norm ParameterList::norm(NormKind kind, const std::string& name, const Dimension& size) {
  switch (kind) {
    case NormKind::layer: return layer_norm(name, size);
    case NormKind::layer_fp32: return {kind, {}, {}};
    default: return {kind, add(name + ".weight", {size}), {}};
  }
}

Embedding ParameterList::embedding(const std::string& name, const Dimension& rows, const Dimension& size) {
  return {add_weight(name + ".weight", {rows, size}, ModuleKind::embedding), -1};
}

}  // namespace ullage::model
