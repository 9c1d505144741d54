// One recorded operator of the autograd graph.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/names.h"
#include "tensor/tensor.h"

namespace ullage::tensor {

struct Ticket;
class SavedOffload;

// Whether operators cast what they are given, and to what (autocast.h).
struct Autocast {
  bool enabled = false;
  DType dtype = DType::bf16;
};

// What a part of the model that may be checkpointed returns; most return one tensor.
struct RegionOutput {
  RegionOutput() = default;
  RegionOutput(Tensor output) : hidden(std::move(output)) {}  // NOLINT(google-explicit-constructor)
  RegionOutput(Tensor output, Tensor beside) : hidden(std::move(output)), second(std::move(beside)) {}

  Tensor hidden;
  Tensor second;  // what is returned beside it, such as the probabilities of attention; may be empty
};

// The part of the model that is run again in backward, as a function of its positional input. What it captures lives
// as long as the checkpoint, as keyword arguments do in Python.
using Region = std::function<RegionOutput(Tensor hidden, Tensor extra)>;

// One checkpointed call. Alive while one of its tickets, or its node, is.
struct Checkpoint {
  std::uint32_t refs = 0;
  Context* context = nullptr;
  Region region;
  Tensor input;
  Tensor extra;
  std::uint32_t input_away = 0;  // its number, where the input waits on the host; `input` is a shell then
  std::vector<Ticket*> tickets;  // by order of saving; not owned, cleared by a ticket that dies
  std::size_t filled = 0;        // tickets met again by the running rerun
  bool rerun = false;            // the region has been run again
  Autocast autocast;             // as it was when the region ran first
};

[[gnu::noinline]] void destroy(Checkpoint* checkpoint);

// What is kept in place of a saved tensor: by a checkpointed region, filled when the region is run again and emptied
// when the tensor is used; or for a tensor that waits on the host (offload.h).
struct Ticket {
  std::uint32_t refs = 0;
  Ref<Checkpoint> checkpoint;
  SavedOffload* offload = nullptr;
  Tensor tensor;
  std::size_t index = 0;  // among the checkpoint's tickets, or of the tensor that is away
};
[[gnu::noinline]] void destroy(Ticket* ticket);

struct Saved {
  Tensor tensor;
  Ref<Ticket> ticket;
};

// Where a gradient goes: input `input` of `node`; an empty node means that nobody wants it.
struct Edge {
  Ref<Node> node;
  std::uint32_t input = 0;
};

// One expected gradient: the shape and type of the forward output, and what has arrived so far.
struct GradientInput {
  Dims sizes;
  DType dtype = DType::f32;
  Tensor buffer;
};

using Gradients = SmallList<Tensor, 3>;

// Computes the gradients of the node's edges from `in` (one entry for each forward output, possibly empty). The
// incoming gradients stay alive in `in` until the engine drops them.
using BackwardFunction = void (*)(Node& node, Gradients& in, Gradients& out);

struct Node {
  std::uint32_t refs = 0;
  std::uint32_t epoch = 0;        // of the backward pass that last counted this node
  std::int32_t dependencies = 0;  // gradients still to come in that pass
  NameId module = 0;
  std::int16_t layer = memory::kNoLayer;
  bool leaves_at_once = false;    // a leaf takes its gradient before the next edge gets its own
  bool ghost = false;             // stands in for a node of a graph that nobody will walk; has no edges, but knows
  std::uint64_t ghost_wants = 0;  // which of them, one bit each, would lead to somebody who wants a gradient
  std::uint64_t sequence = 0;     // creation number; ready nodes run highest first
  BackwardFunction backward = nullptr;
  Context* context = nullptr;
  SmallList<Edge, 3> edges;
  SmallList<GradientInput, 1> inputs;
  SmallList<Saved, 3> saved;
  // Whatever the operator has to remember; each operator says what.
  std::int64_t number[3] = {0, 0, 0};
  Dims dims;
  Ref<Checkpoint> checkpoint;  // reentrant checkpoints only
  Ref<TensorImpl> leaf;        // accumulators only
  Tensor kept;                 // what the operator holds beside autograd, as long as the node lives

  bool wants(std::size_t edge) const {
    if (ghost) return (ghost_wants >> edge & 1) != 0;
    return static_cast<bool>(edges[edge].node);
  }
};

}  // namespace ullage::tensor
