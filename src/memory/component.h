// What a byte is for. The names are those of the JSON contract (docs/schema/).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ullage::memory {

enum class Component : std::uint8_t {
  parameters,
  gradients,    // .grad of a parameter; a gradient still on its way is a temporary
  optimizer,    // state that lives from step to step
  buffers,      // state of the model that is not trained: rotary tables, running statistics
  inputs,       // the batch: token ids, labels, images
  activations,  // made by the forward pass and held: saved for backward, or returned to the caller
  temporaries,
  communication,
  kv_cache,
  recurrent_state,
  cuda_graphs,
  workspace,  // library workspaces that come from the framework's allocator
  context,
  libraries,
  projector,
  fragmentation,
  cached,
  unattributed,
};

inline constexpr std::size_t kComponents = static_cast<std::size_t>(Component::unattributed) + 1;

inline constexpr std::array<std::string_view, kComponents> kComponentNames{
    "parameters",  "gradients",     "optimizer", "buffers",         "inputs",      "activations",
    "temporaries", "communication", "kv_cache",  "recurrent_state", "cuda_graphs", "workspace",
    "context",     "libraries",     "projector", "fragmentation",   "cached",      "unattributed"};

constexpr std::string_view name_of(Component component) { return kComponentNames[static_cast<std::size_t>(component)]; }

// Bytes by component, indexed by static_cast<std::size_t>(Component).
using ByComponent = std::array<std::int64_t, kComponents>;

}  // namespace ullage::memory
