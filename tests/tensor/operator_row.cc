#include "operator_row.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "tensor/autocast.h"
#include "tensor/checkpoint.h"
#include "tensor/record.h"
#include "tensor/tape.h"

namespace ullage::testing {
namespace {

using tensor::Context;
using tensor::Dims;
using tensor::Gradients;
using tensor::Node;
using tensor::Tensor;

Dims dims_of(const Json& list) {
  Dims out;
  for (const Json& value : list) out.push_back(value.get<std::int64_t>());
  return out;
}

std::string text(const Dims& dims) {
  Json list = Json::array();
  for (const std::int64_t value : dims) list.push_back(value);
  return list.dump();
}

std::string describe(const Tensor& x) {
  return text(x.sizes()) + " " + std::string(name_of(x.dtype())) + " strides " + text(x.strides());
}

std::string describe(const Json& row) {
  const DType dtype = *parse_dtype(row.at("dtype").get<std::string>());
  return row.at("shape").dump() + " " + std::string(name_of(dtype)) + " strides " + row.at("strides").dump();
}

// Stands for the operator that made an activation: keeps the gradient that arrives. number[0]: the place for it.
void keep_gradient(Node& node, Gradients& in, Gradients& /*out*/) {
  *reinterpret_cast<Tensor*>(static_cast<std::intptr_t>(node.number[0])) = in[0];
}

// Stands for the caller, who holds the gradients of all outputs. number[0]: its list of them.
void hand_out(Node& node, Gradients& /*in*/, Gradients& out) {
  const auto& incoming = *reinterpret_cast<const std::vector<Tensor>*>(static_cast<std::intptr_t>(node.number[0]));
  for (std::size_t i = 0; i < incoming.size(); ++i) out[i] = incoming[i];
}

std::int64_t address(const void* place) { return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(place)); }

class Replay {
 public:
  Replay(const OperatorRow& row, Operator run) : row_(row), run_(run), context_(policy(row)) {
    const Json& inputs = row.json.at("inputs");
    arrived_.resize(inputs.size());
    seed_ = context_.make({0}, DType::f32);
    seed_.impl()->leaf_requires_grad = true;
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs_.push_back(make_input(inputs[i], i));
  }

  std::vector<std::string> differences() {
    forward();
    if (row_.mode() != "no_grad") backward();
    return std::move(found_);
  }

 private:
  static tensor::Policy policy(const OperatorRow& row) {
    tensor::Policy out = row.json.at("device") == "cpu" ? tensor::cpu_policy() : tensor::cuda_traced_policy();
    out.granularity_bytes = 1;
    return out;
  }

  Tensor make_input(const Json& spec, std::size_t i) {
    Tensor base = context_.make({spec.at("storage_bytes").get<std::int64_t>()}, DType::u8);
    Tensor x = context_.alias(base, dims_of(spec.at("shape")), dims_of(spec.at("strides")));
    x.impl()->dtype = *parse_dtype(spec.at("dtype").get<std::string>());
    if (!spec.at("requires_grad").get<bool>()) return x;
    if (spec.at("role") == "parameter") {
      x.impl()->leaf_requires_grad = true;
      return x;
    }
    tensor::Recording record(context_, keep_gradient, {&seed_});
    record.node()->number[0] = address(&arrived_[i]);
    return record.finish(std::move(x));
  }

  void forward() {
    const std::size_t start = context_.timeline().events.size();
    tensor::Restore<bool> grad(context_.grad_enabled, row_.mode() != "no_grad");
    if (row_.mode().starts_with("autocast")) {
      run_under_autocast(start);
    } else {
      outputs_ = row_.mode() == "recompute" ? run_checkpointed() : run_plain(inputs_);
      compare("forward", row_.json.at("forward"), start);
    }
    compare_outputs();
    if (row_.json.contains("saved")) compare_saved();
    if (row_.json.contains("tickets")) compare_tickets();
  }

  Outputs run_plain(std::vector<Tensor> inputs) {
    Call call{context_, std::move(inputs), row_.attrs()};
    return run_(call);
  }

  void run_under_autocast(std::size_t start) {
    std::size_t leaving = 0;
    {
      const tensor::AutocastRegion region(context_, {true, row_.mode() == "autocast-bf16" ? DType::bf16 : DType::f16});
      outputs_ = run_plain(inputs_);
      compare("forward", row_.json.at("forward"), start);
      leaving = context_.timeline().events.size();
    }
    compare("leaving the region", row_.json.value("leaving_region", Json::array()), leaving);
  }

  Outputs run_checkpointed() {
    const tensor::Region region = [this, others = inputs_](Tensor first, Tensor /*extra*/) {
      std::vector<Tensor> inputs = others;
      inputs[0] = std::move(first);
      return run_plain(std::move(inputs))[0];
    };
    Outputs out;
    out.push_back(tensor::checkpoint(context_, region, inputs_[0]).hidden);
    return out;
  }

  void backward() {
    std::vector<Tensor> incoming;
    std::vector<Tensor> roots;
    for (const Tensor& output : outputs_) {
      if (!output.requires_grad()) continue;
      roots.push_back(output);
      incoming.push_back(context_.make(output.sizes(), output.dtype()));
    }
    tensor::Recording record(context_, hand_out, std::span<const Tensor>(roots));
    if (!record) return note("no output needs a gradient, in PyTorch one does");
    record.node()->number[0] = address(&incoming);
    const Tensor root = record.finish(context_.make({0}, DType::f32));
    const Tensor nothing = context_.make({0}, DType::f32);
    const std::size_t start = context_.timeline().events.size();
    tensor::run_backward(root, nothing);
    compare("backward", row_.json.at("backward"), start);
    compare_gradients();
  }

  void note(std::string what) { found_.push_back(std::move(what)); }

  void compare(const char* what, const Json& theirs, std::size_t start) {
    Json ours = Json::array();
    const memory::Timeline& timeline = context_.timeline();
    for (std::size_t i = start; i < timeline.events.size(); ++i) {
      const memory::Event& event = timeline.events[i];
      const std::int64_t bytes = timeline.blocks[event.block].requested_bytes;
      if (event.kind == memory::EventKind::alloc) ours.push_back(bytes);
      if (event.kind == memory::EventKind::free) ours.push_back(-bytes);
    }
    if (ours == theirs) return;
    const char* kind = releases_sorted(ours) == releases_sorted(theirs) ? kReleaseOrder : "";
    note(kind + std::string(what) + ": PyTorch " + theirs.dump() + ", ours " + ours.dump());
  }

  // Every stretch of releases without an allocation in between, sorted: their order changes no live bytes that an
  // allocation meets.
  static std::vector<std::int64_t> releases_sorted(const Json& events) {
    auto out = events.get<std::vector<std::int64_t>>();
    const auto is_release = [](std::int64_t change) { return change < 0; };
    for (auto from = std::find_if(out.begin(), out.end(), is_release); from != out.end();) {
      const auto to = std::find_if_not(from, out.end(), is_release);
      std::sort(from, to);
      from = std::find_if(to, out.end(), is_release);
    }
    return out;
  }

  Json alias_of(const Tensor& output) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (&inputs_[i].storage() == &output.storage()) return i;
    }
    return nullptr;
  }

  void compare_outputs() {
    const Json& theirs = row_.json.at("outputs");
    if (theirs.size() != outputs_.size()) return note("number of outputs: ours " + std::to_string(outputs_.size()));
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const std::string expected = describe(theirs[i]) + " alias " + theirs[i].at("alias_of_input").dump();
      const std::string ours = describe(outputs_[i]) + " alias " + alias_of(outputs_[i]).dump();
      if (ours != expected) note("output: PyTorch " + expected + ", ours " + ours);
    }
  }

  // Every node that leads from the outputs to the inputs.
  std::vector<const Node*> graph() const {
    std::vector<const Node*> seen;
    std::vector<const Node*> waiting;
    const auto visit = [&](const Node* node) {
      if (node == nullptr || std::find(seen.begin(), seen.end(), node) != seen.end()) return;
      seen.push_back(node);
      waiting.push_back(node);
    };
    for (const Tensor& output : outputs_) visit(output.impl()->grad_fn.get());
    while (!waiting.empty()) {
      const Node* node = waiting.back();
      waiting.pop_back();
      for (std::size_t i = 0; i < node->edges.size(); ++i) visit(node->edges[i].node.get());
    }
    return seen;
  }

  // "input 0", "output 0" or the bytes of a storage that is neither.
  std::string source_of(const Tensor& saved) const {
    const Json input = alias_of(saved);
    if (!input.is_null()) return "input " + input.dump();
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (&outputs_[i].storage() == &saved.storage()) return "output " + std::to_string(i);
    }
    return "fresh";
  }

  // The model holds its parameters, whoever else does (layer norm keeps its bias and never looks at it).
  bool is_parameter(const std::string& source) const {
    if (!source.starts_with("input ")) return false;
    return row_.json.at("inputs")[std::stoul(source.substr(6))].at("role") == "parameter";
  }

  // Which storages backward keeps, each once; the order in which they are kept shows in the rows of recompute.
  void compare_saved() {
    std::multimap<std::string, std::int64_t> theirs;
    std::vector<std::string> counted;
    for (const Json& saved : row_.json.at("saved")) {
      const std::string source = saved.at("source").get<std::string>();
      if (saved.value("host", false) || std::find(counted.begin(), counted.end(), source) != counted.end()) continue;
      counted.push_back(source);
      if (saved.at("bytes").get<std::int64_t>() == 0 || is_parameter(source)) continue;
      theirs.emplace(source.starts_with("fresh") ? "fresh" : source, saved.at("bytes").get<std::int64_t>());
    }
    std::multimap<std::string, std::int64_t> ours;
    std::vector<const tensor::Storage*> seen;
    for (const Node* node : graph()) {
      for (std::size_t i = 0; i < node->saved.size(); ++i) {
        const Tensor& tensor = node->saved[i].tensor;
        if (!tensor || tensor.storage().bytes == 0) continue;
        if (std::find(seen.begin(), seen.end(), &tensor.storage()) != seen.end()) continue;
        seen.push_back(&tensor.storage());
        if (is_parameter(source_of(tensor))) continue;
        ours.emplace(source_of(tensor), tensor.storage().bytes);
      }
    }
    if (sorted(ours) != sorted(theirs))
      note("saved: PyTorch " + sorted(theirs).dump() + ", ours " + sorted(ours).dump());
  }

  static Json sorted(const std::multimap<std::string, std::int64_t>& saved) {
    std::vector<std::string> lines;
    for (const auto& [source, bytes] : saved) lines.push_back(source + ": " + std::to_string(bytes));
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  void compare_tickets() {
    std::int64_t ours = 0;
    for (const Node* node : graph()) {
      for (std::size_t i = 0; i < node->saved.size(); ++i) ours += node->saved[i].ticket ? 1 : 0;
    }
    const auto theirs = row_.json.at("tickets").get<std::int64_t>();
    // What no saved tensor leaves behind, and a tensor saved twice, are the operator's own affair.
    if ((ours == 0) != (theirs == 0))
      note("tickets: PyTorch " + std::to_string(theirs) + ", ours " + std::to_string(ours));
  }

  void compare_gradients() {
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Json& spec = row_.json.at("inputs")[i];
      if (!spec.at("requires_grad").get<bool>()) continue;
      const Tensor ours = spec.at("role") == "parameter" ? inputs_[i].grad() : arrived_[i];
      const Json& theirs = row_.json.at("grads").at(next++);
      const std::string expected = theirs.is_null() ? "none" : describe(theirs);
      const std::string got = ours ? describe(ours) : "none";
      if (got != expected) note("gradient of input " + std::to_string(i) + ": PyTorch " + expected + ", ours " + got);
    }
  }

  const OperatorRow& row_;
  Operator run_;
  Context context_;
  std::vector<Tensor> arrived_;
  Tensor seed_;
  std::vector<Tensor> inputs_;
  Outputs outputs_;
  std::vector<std::string> found_;
};

}  // namespace

std::string OperatorRow::title() const {
  std::string out = file + ":" + std::to_string(line) + " " + op() + " " + attrs().dump() + " " + mode();
  for (const Json& input : json.at("inputs")) {
    out += " | " + describe(input) + (input.at("requires_grad").get<bool>() ? "" : " no grad");
  }
  return out;
}

std::vector<OperatorRow> read_operator_rows() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(ULLAGE_TEST_DATA "/ops")) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<OperatorRow> rows;
  for (const auto& path : files) {
    std::ifstream in(path);
    std::string line;
    for (std::size_t number = 1; std::getline(in, line); ++number) {
      if (line.empty()) continue;
      rows.push_back({path.filename().string(), number, *parse_json(line, path.string())});
    }
  }
  return rows;
}

std::vector<std::string> differences(const OperatorRow& row, Operator run) { return Replay(row, run).differences(); }

}  // namespace ullage::testing
