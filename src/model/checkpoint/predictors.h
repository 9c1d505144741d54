// Layers that predict further tokens: published checkpoints store them, transformers' classes leave them out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "model/architecture.h"

namespace ullage::model {

struct Predictors {
  std::int64_t count = 0;
  bool said = false;         // by the configuration; otherwise it is what the family's published checkpoints have
  LayerKind layer;           // what each has of the model's own layers
  std::int64_t besides = 0;  // elements of one besides: norms, a projection of two hidden states to one, vocabulary
  std::string_view source;

  std::int64_t elements() const;  // of one
};

// Empty: the family has none, or the configuration says so.
std::optional<Predictors> predictors_of(const Architecture& architecture, const JsonObject& config);

// Parameters and stored buffers.
std::int64_t stored_elements(const LayerKind& kind);
std::int64_t stored_elements(const std::vector<Buffer>& buffers);

}  // namespace ullage::model
