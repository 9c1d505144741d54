#include "report/inspection.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "base/bytes.h"

namespace ullage::report {
namespace {

constexpr std::array<std::string_view, 9> kProducts{
    "mm", "addmm", "bmm", "baddbmm", "grouped_mm", "conv2d", "conv3d", "flash_attention", "efficient_attention"};

std::vector<std::int64_t> shape_of(const model::Parameter& parameter) {
  std::vector<std::int64_t> out;
  for (const model::Dimension& dim : parameter.dims) out.push_back(dim.size());
  return out;
}

ParameterLine line_of(const model::Architecture& architecture, const model::Parameter& parameter) {
  ParameterLine line{parameter.name, shape_of(parameter), 1, parameter.elements(), {}};
  if (parameter.tied_to) line.tied_to = architecture.parameters[static_cast<std::size_t>(*parameter.tied_to)].name;
  return line;
}

std::int64_t layers_of_kind(const model::Architecture& architecture, std::size_t kind) {
  return std::count(architecture.layers.begin(), architecture.layers.end(), static_cast<std::uint8_t>(kind));
}

bool is_of_encoder(const model::Architecture& architecture, std::size_t kind) {
  const auto end = architecture.layers.begin() + architecture.encoder_layers;
  return std::find(architecture.layers.begin(), end, static_cast<std::uint8_t>(kind)) != end;
}

std::vector<ParameterLine> parameter_lines(const model::Architecture& architecture) {
  std::vector<ParameterLine> out;
  const auto add_outer = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) out.push_back(line_of(architecture, architecture.parameters[i]));
  };
  const auto add_layers = [&](const std::string& prefix, bool in_encoder) {
    for (std::size_t k = 0; k < architecture.kinds.size(); ++k) {
      if (is_of_encoder(architecture, k) != in_encoder) continue;
      for (const model::Parameter& parameter : architecture.kinds[k].parameters) {
        ParameterLine& line = out.emplace_back(line_of(architecture, parameter));
        line.name = prefix + "*." + parameter.name;
        line.copies = layers_of_kind(architecture, k);
      }
    }
  };
  add_outer(0, architecture.encoder_at);
  add_layers(architecture.encoder_prefix, true);
  add_outer(architecture.encoder_at, architecture.layers_at);
  add_layers(architecture.layer_prefix, false);
  add_outer(architecture.layers_at, architecture.parameters.size());
  return out;
}

// The name with "*" in place of the first number in it, if it has one.
std::string without_number(const std::string& name) {
  for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    const std::size_t end = name.find('.', dot + 1);
    const std::string part = name.substr(dot + 1, end == name.npos ? end : end - dot - 1);
    const bool digits = std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!part.empty() && digits) return name.substr(0, dot + 1) + "*" + (end == name.npos ? "" : name.substr(end));
  }
  return name;
}

// Layers of towers stand among what is outside of layers in an outline: equal ones share a line, too.
std::vector<ParameterLine> joined_by_number(std::vector<ParameterLine> lines) {
  std::vector<ParameterLine> out;
  std::map<std::pair<std::string, std::vector<std::int64_t>>, std::size_t> seen;
  for (ParameterLine& line : lines) {
    std::string name = without_number(line.name);
    if (line.copies > 1 || !line.tied_to.empty() || name == line.name) {
      out.push_back(std::move(line));
      continue;
    }
    const auto [at, is_new] = seen.try_emplace({name, line.shape}, out.size());
    if (!is_new) {
      ++out[at->second].copies;
      continue;
    }
    line.name = std::move(name);
    out.push_back(std::move(line));
  }
  return out;
}

std::vector<LayerGroup> layer_groups(const model::Architecture& architecture) {
  std::vector<LayerGroup> out;
  for (std::size_t k = 0; k < architecture.kinds.size(); ++k) {
    const model::LayerKind& kind = architecture.kinds[k];
    LayerGroup& group = out.emplace_back();
    group.name = kind.name;
    group.count = layers_of_kind(architecture, k);
    for (const model::Parameter& parameter : kind.parameters) group.parameters += parameter.elements();
    group.heads = kind.attention.heads;
    group.kv_heads = kind.attention.kv_heads;
    group.head_dim = kind.attention.head_dim;
  }
  return out;
}

std::int64_t buffer_bytes(const std::vector<model::Buffer>& buffers, DType dtype) {
  std::int64_t total = 0;
  for (const model::Buffer& buffer : buffers) {
    std::int64_t elements = 1;
    for (const std::int64_t size : buffer.sizes) elements = multiply_saturated(elements, size);
    total = add_saturated(total, multiply_saturated(elements, size_of(buffer.in_model_dtype ? dtype : buffer.dtype)));
  }
  return total;
}

std::int64_t buffer_bytes(const model::Architecture& architecture, DType dtype) {
  std::int64_t total = buffer_bytes(architecture.buffers, dtype);
  for (std::size_t k = 0; k < architecture.kinds.size(); ++k) {
    const std::int64_t of_one = buffer_bytes(architecture.kinds[k].buffers, dtype);
    total = add_saturated(total, multiply_saturated(of_one, layers_of_kind(architecture, k)));
  }
  return total;
}

// Modules by (what is in front of the number of their layer, name), in the order of their first operator.
class Modules {
 public:
  explicit Modules(const model::Architecture& architecture) : architecture_(architecture) {}

  void add(const memory::OpRecord& op, std::string_view module, bool product) {
    ModuleLine& line = find(prefix_of(op.layer), module);
    line.flops = add_saturated(line.flops, op.flops);
    if (product) line.macs = add_saturated(line.macs, op.flops / 2);
  }

  // Parameters go to the module that their name begins with.
  void add_parameters(const ParameterLine& parameter) {
    if (!parameter.tied_to.empty()) return;
    std::string name = parameter.name.substr(0, parameter.name.rfind('.'));
    const std::string_view prefix = prefix_of(name);
    if (!prefix.empty()) name = name.substr(prefix.size() + 2);
    ModuleLine& line = find(prefix, name);
    line.parameters += parameter.elements * parameter.copies;
    // Layers of several kinds have it; of each, its first parameter tells how many.
    const auto [first, is_new] = first_.try_emplace(&line - lines_.data(), parameter.name);
    if (is_new) line.copies = 0;
    if (first->second == parameter.name) line.copies += parameter.copies;
  }

  std::vector<ModuleLine> take() { return std::move(lines_); }

 private:
  // Empty outside of layers.
  std::string_view prefix_of(std::int16_t layer) const {
    if (layer == memory::kNoLayer) return {};
    return architecture_.in_encoder(layer) ? architecture_.encoder_prefix : architecture_.layer_prefix;
  }

  std::string_view prefix_of(const std::string& parameter) const {
    for (const std::string* prefix : {&architecture_.encoder_prefix, &architecture_.layer_prefix}) {
      if (!prefix->empty() && parameter.starts_with(*prefix + "*.")) return *prefix;
    }
    return {};
  }

  std::int64_t layers_behind(std::string_view prefix) const {
    if (prefix.empty()) return 1;
    const std::int64_t encoder = architecture_.encoder_layers;
    return encoder > 0 && prefix == architecture_.encoder_prefix ? encoder : architecture_.layer_count() - encoder;
  }

  ModuleLine& find(std::string_view prefix, std::string_view module) {
    const auto [at, is_new] = index_.try_emplace({prefix, std::string(module)}, lines_.size());
    if (!is_new) return lines_[at->second];
    ModuleLine& line = lines_.emplace_back();
    line.name = prefix.empty() ? std::string(module)
                               : std::string(prefix) + "*" + (module.empty() ? "" : ".") + std::string(module);
    line.copies = layers_behind(prefix);
    return line;
  }

  const model::Architecture& architecture_;
  std::map<std::pair<std::string_view, std::string>, std::size_t> index_;
  std::map<std::ptrdiff_t, std::string> first_;  // parameter of each line
  std::vector<ModuleLine> lines_;
};

bool is_product(std::string_view op) { return std::find(kProducts.begin(), kProducts.end(), op) != kProducts.end(); }

std::vector<ModuleLine> module_lines(const model::Architecture& architecture,
                                     const std::vector<ParameterLine>& parameters, const memory::Timeline& timeline) {
  Modules modules(architecture);
  for (const memory::OpRecord& op : timeline.ops) {
    if (op.phase == memory::Phase::forward)
      modules.add(op, timeline.names[op.module], is_product(timeline.names[op.name]));
  }
  for (const ParameterLine& line : parameters) modules.add_parameters(line);
  return modules.take();
}

}  // namespace

Inspection inspect(const model::Architecture& architecture, const engines::pytorch::TrainOptions& options,
                   const engines::pytorch::TrainRun* forward) {
  const std::int64_t count = model::parameter_count(architecture);
  Inspection out;
  out.model = {architecture.name,
               architecture.family,
               count,
               count,
               model::active_parameter_count(architecture),
               multiply_saturated(count, size_of(options.dtype))};
  out.dtype = options.dtype;
  out.layer_count = architecture.layer_count();
  out.vocab = architecture.vocab;
  out.hidden = architecture.hidden;
  out.max_positions = architecture.max_positions;
  out.buffer_bytes = buffer_bytes(architecture, options.dtype);
  out.layers = layer_groups(architecture);
  out.parameters = parameter_lines(architecture);
  if (forward == nullptr) {
    out.parameters = joined_by_number(std::move(out.parameters));
    out.modules = module_lines(architecture, out.parameters, {});
    return out;
  }
  if (architecture.input != model::InputKind::images) out.seq_len = options.seq_len;
  else out.image_size = options.image_size;
  out.modules = module_lines(architecture, out.parameters, forward->timeline);
  out.flops = out.macs = 0;
  for (const ModuleLine& line : out.modules) {
    out.flops = add_saturated(*out.flops, line.flops);
    out.macs = add_saturated(*out.macs, line.macs);
  }
  return out;
}

Expected<TensorFacts> inspect_tensor(std::string_view text, DType dtype, std::string_view where) {
  TensorFacts out;
  out.dtype = dtype;
  out.elements = 1;
  const char* at = text.data();
  const char* end = text.data() + text.size();
  while (true) {
    std::int64_t size = 0;
    const auto read = std::from_chars(at, end, size);
    if (read.ec != std::errc{} || size < 1) {
      return fail(
          ErrorCode::invalid_argument, std::string(where),
          fmt::format("'{}' is not a shape; write sizes of 1 or more such as 32x3x256x256", text.substr(0, 60)));
    }
    out.shape.push_back(size);
    out.elements = multiply_saturated(out.elements, size);
    at = read.ptr;
    if (at == end) break;
    if (*at != 'x' || ++at == end) at = end;  // what follows is no number
  }
  out.bytes = multiply_saturated(out.elements, size_of(dtype));
  if (out.bytes > kMaxBytes / 2)
    return fail(ErrorCode::too_large, std::string(where), "more bytes than can be counted; use a smaller shape");
  out.allocated_bytes = round_up(out.bytes, 512);
  return out;
}

}  // namespace ullage::report
