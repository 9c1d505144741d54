#include "report/why.h"

#include <optional>

#include "hardware/process_memory.h"

namespace ullage::report {
namespace {

using engines::pytorch::Optimizer;
using memory::Component;

constexpr std::size_t kContributors = 5;
// Where it is seen how long a tensor lives.
std::string tracked(const TrainQuestion& question) {
  const bool image = question.architecture.is_module_tree();
  return std::string("PyTorch 2.14 in eager mode, operator by operator, as ") +
         (image ? "torchvision calls them" : "transformers 5.12 calls them");
}

// States of the size and type of a parameter that an optimizer of torch.optim keeps of each; 0: none, or others.
std::int64_t states_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adamw:
    case Optimizer::adam: return 2;
    case Optimizer::sgd_momentum:
    case Optimizer::adagrad:
    case Optimizer::rmsprop: return 1;
    default: return 0;
  }
}

// Whether all parameters have one type and all are trained.
bool is_uniform(const TrainQuestion& question) {
  const model::Tuning& tuning = question.options.tuning;
  return tuning.tuner == model::Tuner::none && tuning.frozen.empty();
}

std::int64_t element_bytes(const TrainQuestion& question) { return size_of(question.options.dtype); }

// copies x elements x size, and what rounding adds; nothing where less than that is alive.
std::optional<Why> per_element(const TrainQuestion& question, Text rule, std::int64_t copies, std::int64_t bytes) {
  const std::int64_t elements = model::parameter_count(question.architecture);
  const std::int64_t bare = multiply_saturated(copies * element_bytes(question), elements);
  if (copies == 0 || bytes < bare || !is_uniform(question)) return std::nullopt;
  const std::int64_t granularity = question.run.timeline.granularity_bytes;
  return Why{{rule, {{"granularity", granularity}}},
             {{"copies", copies},
              {"elements", elements},
              {"bytes_per_element", element_bytes(question)},
              {"rounding_bytes", bytes - bare}},
             {}};
}

Why sum_of_tensors(const TrainQuestion& question, Text rule, Component component, std::int64_t bytes,
                   std::span<const Group> groups) {
  Why why{{rule, {}}, {}, tracked(question)};
  std::int64_t rest = bytes;
  for (const Group& group : groups) {
    if (group.component != component || why.values.size() == kContributors) continue;
    why.values.emplace_back(group.name, group.bytes);
    rest -= group.bytes;
  }
  if (rest != 0) why.values.emplace_back("all others", rest);
  return why;
}

Why with_source(Why why, std::string source) {
  why.source = std::move(source);
  return why;
}

Text sum_rule(Component component) {
  switch (component) {
    case Component::parameters: return Text::why_parameters_part;
    case Component::gradients: return Text::why_gradients;
    case Component::optimizer: return Text::why_optimizer_part;
    case Component::buffers: return Text::why_buffers;
    case Component::inputs: return Text::why_inputs;
    case Component::workspace: return Text::why_workspace;
    case Component::kv_cache: return Text::why_kv_cache;
    case Component::activations: return Text::why_activations;
    default: return Text::why_temporaries;
  }
}

}  // namespace

Why why_of(const TrainQuestion& question, Component component, std::int64_t bytes, std::span<const Group> groups) {
  if (component == Component::parameters) {
    if (auto why = per_element(question, Text::why_parameters, 1, bytes)) {
      return with_source(*std::move(why),
                         "shapes of the model's parameters; c10/cuda/CUDACachingAllocator.cpp for the rounding");
    }
  }
  if (component == Component::optimizer) {
    if (auto why = per_element(question, Text::why_optimizer, states_of(question.options.optimizer), bytes)) {
      return with_source(*std::move(why), "torch.optim (PyTorch 2.14): states have their parameter's shape and type");
    }
  }
  if (component == Component::workspace && bytes > 0) {
    return with_source(sum_of_tensors(question, Text::why_workspace, component, bytes, groups),
                       hardware::process_memory(question.gpu).cublas_workspace_source);
  }
  if (bytes == 0) return {{Text::why_nothing, {}}, {}, tracked(question)};
  return sum_of_tensors(question, sum_rule(component), component, bytes, groups);
}

}  // namespace ullage::report
