// A checkpoint beside the model that it is for: what each has that the other has not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/architecture.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/extras.h"

namespace ullage::model {

// Tensors of one kind.
struct TensorGroup {
  Extra what = Extra::other;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  std::string example;  // the first one's name
};

struct Difference {
  std::vector<TensorGroup> only_stored;    // by kind, in the order of Extra
  std::vector<std::string> only_in_model;  // names of parameters that no tensor stands for
  std::vector<std::string> other_shape;    // names of parameters that are stored with another number of elements
};

// By names: those of the model, those that transformers' loader renames to them (a wrapper's prefix, Mixtral's
// block_sparse_moe, experts stored one by one), and packed weights under their module's name. Of GGUF files, whose
// names are ggml's own, only what is no weight of a layer is told (`only_stored`).
Difference compare(const Architecture& architecture, const Checkpoint& checkpoint);

// Parts of a network, as the names of stored tensors tell them.
enum class StoredPart : std::uint8_t { embeddings, attention, experts, feed_forward, norms, head, scales, other };
StoredPart part_of(std::string_view tensor);

}  // namespace ullage::model
