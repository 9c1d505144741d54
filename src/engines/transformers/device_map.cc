#include "engines/transformers/device_map.h"

#include <algorithm>
#include <deque>
#include <set>
#include <string_view>

#include "base/bytes.h"
#include "engines/transformers/serve.h"
#include "tensor/quantised.h"

namespace ullage::engines::transformers {
namespace {

// A module with all that is below it. Layers are leaves: they are not split.
struct Node {
  std::string name;
  std::int64_t bytes = 0;
  std::vector<std::size_t> children;
};

struct Widths {
  std::int64_t out = 0;
  std::int64_t in = 0;
};

Widths widths_of(const model::Parameter& weight) {
  const bool turned = weight.module == model::ModuleKind::conv1d;
  return {weight.dims[turned ? 1 : 0].size(), weight.dims[turned ? 0 : 1].size()};
}

bool is_packed(model::BaseFormat format) {
  return format == model::BaseFormat::gptq || format == model::BaseFormat::awq;
}

std::string_view module_of(std::string_view name) { return name.substr(0, name.rfind('.')); }

// What the library counts: half a byte and a byte for bitsandbytes' weights, without their scales; tensors otherwise.
std::int64_t counted_bytes(const model::Parameter& parameter, const model::ParameterRole& role, model::BaseFormat base,
                           DType dtype) {
  const bool by_tensors = is_packed(base) || base == model::BaseFormat::fp8;
  if (by_tensors || !role.quantised) return resident_bytes(parameter, role, base, dtype);
  if (parameter.tied_to) return 0;
  return base == model::BaseFormat::int8 ? parameter.elements() : parameter.elements() / 2;
}

std::int64_t buffer_bytes(const model::Buffer& buffer, DType dtype) {
  std::int64_t elements = 1;
  for (const std::int64_t size : buffer.sizes) elements *= size;
  return elements * size_of(buffer.in_model_dtype ? dtype : buffer.dtype);
}

// The modules of a model, in the order in which they are registered.
class Tree {
 public:
  Tree() : nodes_(1) {}

  // Adds bytes to a module and to all that it lies in.
  std::size_t add(std::string_view module, std::int64_t bytes) {
    std::size_t at = 0;
    nodes_[0].bytes += bytes;
    for (std::size_t from = 0; from < module.size();) {
      const std::size_t dot = std::min(module.find('.', from), module.size());
      at = child(at, std::string(module.substr(0, dot)));
      nodes_[at].bytes += bytes;
      from = dot + 1;
    }
    return at;
  }

  const Node& operator[](std::size_t i) const { return nodes_[i]; }
  std::size_t size() const { return nodes_.size(); }

 private:
  std::size_t child(std::size_t parent, std::string name) {
    for (const std::size_t i : nodes_[parent].children) {
      if (nodes_[i].name == name) return i;
    }
    nodes_.push_back({std::move(name), 0, {}});
    nodes_[parent].children.push_back(nodes_.size() - 1);
    return nodes_.size() - 1;
  }

  std::vector<Node> nodes_;
};

struct Layer {
  std::int64_t bytes = 0;
  std::int64_t leaves = 0;  // modules that hold tensors themselves
};

struct Modules {
  Tree tree;
  std::vector<std::size_t> parameters;  // node of each
  std::vector<std::size_t> layers;
  std::vector<std::size_t> buffers;
  std::size_t tied = 0;  // module that lives where the embedding does; 0: none
  std::size_t embedding = 0;
  std::int64_t first_layer_bytes = 0;
  std::int64_t leaves = 0;
};

Layer layer_of(const model::LayerKind& kind, const std::vector<model::ParameterRole>& roles,
               const model::TuningPlan& plan, DType dtype) {
  Layer out;
  std::set<std::string_view> leaves;
  for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
    out.bytes += counted_bytes(kind.parameters[i], roles[i], plan.base, dtype);
    leaves.insert(module_of(kind.parameters[i].name));
  }
  for (const model::Buffer& buffer : kind.buffers) {
    out.bytes += buffer_bytes(buffer, dtype);
    leaves.insert(module_of(buffer.name));
  }
  out.leaves = static_cast<std::int64_t>(leaves.size());
  return out;
}

class Reader {
 public:
  Reader(const model::Architecture& architecture, const model::TuningPlan& plan, DType dtype)
      : architecture_(architecture), plan_(plan), dtype_(dtype) {}

  Modules read() {
    add_parameters(0, architecture_.layers_at);
    add_layers();
    add_parameters(architecture_.layers_at, architecture_.parameters.size());
    for (const model::Buffer& buffer : architecture_.buffers) {
      out_.buffers.push_back(add(module_of(buffer.name), buffer_bytes(buffer, dtype_)));
    }
    out_.leaves += static_cast<std::int64_t>(leaves_.size());
    return std::move(out_);
  }

 private:
  std::size_t add(std::string_view module, std::int64_t bytes) {
    if (bytes > 0) leaves_.insert(std::string(module));
    return out_.tree.add(module, bytes);
  }

  void add_parameters(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      const model::Parameter& parameter = architecture_.parameters[i];
      const std::int64_t bytes = counted_bytes(parameter, plan_.globals[i], plan_.base, dtype_);
      const std::size_t node = add(module_of(parameter.name), bytes);
      out_.parameters.push_back(node);
      if (!parameter.tied_to) continue;
      out_.tied = node;
      out_.embedding = out_.parameters[static_cast<std::size_t>(*parameter.tied_to)];
    }
  }

  void add_layers() {
    std::vector<Layer> kinds;
    for (std::size_t i = 0; i < architecture_.kinds.size(); ++i)
      kinds.push_back(layer_of(architecture_.kinds[i], plan_.kinds[i], plan_, dtype_));
    for (std::size_t i = 0; i < architecture_.layers.size(); ++i) {
      const Layer& layer = kinds[architecture_.layers[i]];
      out_.layers.push_back(out_.tree.add(architecture_.layer_prefix + std::to_string(i), layer.bytes));
      out_.leaves += layer.leaves;
      if (i == 0) out_.first_layer_bytes = layer.bytes;
    }
  }

  const model::Architecture& architecture_;
  const model::TuningPlan& plan_;
  DType dtype_;
  std::set<std::string> leaves_;
  Modules out_;
};

// get_balanced_memory: an equal share and room for a layer more, but for the last card, which takes what is left.
void balance(std::vector<std::int64_t>& most, const Modules& modules, bool low_zero) {
  const auto cards = static_cast<std::int64_t>(most.size());
  if (cards == 1) {
    most[0] = static_cast<std::int64_t>(static_cast<double>(most[0]) * 0.9);
    return;
  }
  const std::int64_t all = modules.tree[0].bytes;
  const std::int64_t mean = all / std::max<std::int64_t>(modules.leaves, 1);
  const auto room = static_cast<std::int64_t>(1.25 * static_cast<double>(std::max(modules.first_layer_bytes, mean)));
  const std::int64_t share = all / (low_zero ? cards - 1 : cards) + room;
  for (std::size_t i = 0; i + 1 < most.size(); ++i) {
    if (!low_zero || i != 0) most[i] = std::min(share, most[i]);
  }
  if (!low_zero) return;
  std::int64_t others = 0;
  for (std::size_t i = 1; i < most.size(); ++i) others += most[i];
  most[0] = std::min(std::max<std::int64_t>(0, all - others), most[0]);
}

// infer_auto_device_map.
class Placer {
 public:
  Placer(const Modules& modules, std::vector<std::int64_t> most)
      : modules_(modules), most_(std::move(most)), used_(most_.size(), 0), device_(modules.tree.size(), kProcessor) {}

  void run() {
    const Node& root = modules_.tree[0];
    todo_.assign(root.children.begin(), root.children.end());
    find_largest();
    largest_of_all_ = largest_;
    while (!todo_.empty()) treat();
  }

  std::int32_t device_of(std::size_t node) const { return device_[node]; }
  const std::vector<std::pair<std::string, std::int32_t>>& placed() const { return placed_; }
  const std::vector<std::int64_t>& used() const { return used_; }
  std::int64_t largest() const { return largest_of_all_; }

 private:
  const Node& node(std::size_t i) const { return modules_.tree[i]; }

  bool lies_in(std::size_t inner, std::size_t outer) const {
    const std::string& a = node(inner).name;
    const std::string& b = node(outer).name;
    return a == b || (a.size() > b.size() && a[b.size()] == '.' && a.compare(0, b.size(), b) == 0);
  }

  // get_max_layer_size, of what is still to be placed.
  void find_largest() {
    largest_ = 0;
    largest_nodes_.clear();
    std::vector<std::size_t> open(todo_.rbegin(), todo_.rend());
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      const Node& one = node(i);
      if (!one.children.empty()) {
        open.insert(open.end(), one.children.rbegin(), one.children.rend());
      } else if (one.bytes > largest_) {
        largest_ = one.bytes;
        largest_nodes_ = {i};
      } else if (one.bytes == largest_) {
        largest_nodes_.push_back(i);
      }
    }
  }

  // The first card keeps room for the largest layer, to which those of the processor would come.
  std::int64_t kept_free() const { return card_ == 0 ? largest_ : 0; }
  bool on_cards() const { return card_ < most_.size(); }

  void treat() {
    const std::size_t i = todo_.front();
    todo_.pop_front();
    std::erase_if(largest_nodes_, [&](std::size_t one) { return lies_in(one, i); });
    if (largest_nodes_.empty()) find_largest();
    if (!on_cards()) return put(i, kProcessor);
    const std::int64_t room = most_[card_] - kept_free();
    const std::int64_t needed = used_[card_] + node(i).bytes;
    if (needed <= room) {
      used_[card_] = needed;
      return put(i, static_cast<std::int32_t>(card_));
    }
    if (!node(i).children.empty()) {
      todo_.insert(todo_.begin(), node(i).children.begin(), node(i).children.end());
      find_largest();
      return;
    }
    ++card_;
    todo_.push_front(i);
  }

  void put(std::size_t i, std::int32_t device) {
    assign(i, device);
    placed_.emplace_back(node(i).name, device);
    const bool has_embedding = modules_.tied != 0 && lies_in(modules_.embedding, i) && !lies_in(modules_.tied, i);
    if (!has_embedding) return;
    const auto partner =
        std::find_if(todo_.begin(), todo_.end(), [&](std::size_t one) { return lies_in(modules_.tied, one); });
    if (partner == todo_.end()) return;
    assign(*partner, device);
    placed_.emplace_back(node(*partner).name, device);
    todo_.erase(partner);
  }

  void assign(std::size_t i, std::int32_t device) {
    device_[i] = device;
    for (const std::size_t child : node(i).children) assign(child, device);
  }

  const Modules& modules_;
  std::vector<std::int64_t> most_;
  std::vector<std::int64_t> used_;
  std::vector<std::int32_t> device_;  // by node
  std::deque<std::size_t> todo_;
  std::vector<std::pair<std::string, std::int32_t>> placed_;
  std::int64_t largest_ = 0;
  std::int64_t largest_of_all_ = 0;
  std::vector<std::size_t> largest_nodes_;
  std::size_t card_ = 0;
};

}  // namespace

bool leaves_a_tenth(model::BaseFormat format) {
  using model::BaseFormat;
  return format != BaseFormat::plain && format != BaseFormat::fp8 && !is_packed(format);
}

std::int64_t resident_bytes(const model::Parameter& parameter, const model::ParameterRole& role, model::BaseFormat base,
                            DType dtype) {
  if (parameter.tied_to) return 0;
  if (!role.quantised) return parameter.elements() * size_of(dtype);
  const Widths widths = widths_of(parameter);
  if (is_packed(base)) return tensor::packed_bytes(widths.out, widths.in, base == model::BaseFormat::awq);
  if (base == model::BaseFormat::fp8) return tensor::block_scaled_bytes(widths.out, widths.in);
  if (base == model::BaseFormat::int8) return tensor::eight_bit_bytes(parameter.elements(), widths.out);
  return tensor::four_bit_bytes(parameter.elements(), base == model::BaseFormat::nf4_dq);
}

std::int32_t Placement::main() const {
  for (const auto& [name, device] : modules) {
    if (device != kProcessor) return device;
  }
  return 0;
}

std::int32_t Placement::of_rotary(const model::Architecture& architecture) const {
  const bool has = architecture.rotary.dim > 0 && architecture.rotary.buffer < buffers.size();
  return has ? buffers[architecture.rotary.buffer] : main();
}

std::int64_t Placement::left_to_processor() const {
  return std::count_if(modules.begin(), modules.end(), [](const auto& entry) { return entry.second == kProcessor; });
}

Placement place(const model::Architecture& architecture, const model::TuningPlan& plan, const ServeOptions& options,
                DeviceMap map, std::span<const std::int64_t> free_bytes) {
  const Modules modules = Reader(architecture, plan, options.dtype).read();
  std::vector<std::int64_t> most(free_bytes.begin(), free_bytes.end());
  if (map != DeviceMap::sequential) balance(most, modules, map == DeviceMap::balanced_low_0);
  if (leaves_a_tenth(options.weights)) {
    for (std::int64_t& bytes : most) bytes = static_cast<std::int64_t>(static_cast<double>(bytes) * 0.9);
  }
  Placer placer(modules, std::move(most));
  placer.run();
  Placement out;
  for (const std::size_t node : modules.parameters) out.parameters.push_back(placer.device_of(node));
  for (const std::size_t node : modules.layers) out.layers.push_back(placer.device_of(node));
  for (const std::size_t node : modules.buffers) out.buffers.push_back(placer.device_of(node));
  out.modules = placer.placed();
  out.bytes = placer.used();
  out.largest_bytes = placer.largest();
  return out;
}

}  // namespace ullage::engines::transformers
