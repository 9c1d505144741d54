// Building more models than can be run: every family, and families of which the outline alone is known.
//
// An outline has the parameters of the whole model, with checkpoint names and axes, and what its layers keep between
// tokens; no forward pass. Weights, caches and what a checkpoint stores are answered from it.
#pragma once

#include <span>
#include <string_view>

#include "base/json.h"
#include "model/architecture.h"

namespace ullage::model {

struct Outline {
  std::string_view model_type;  // as configurations call it
  Expected<Architecture> (*build)(const JsonObject& config);
};

// Of families without a forward pass, by name.
std::span<const Outline> outlines();
const Outline* find_outline(std::string_view model_type);

// As build_architecture (family.h), but the whole of a model where its outline is known rather than its text part.
Expected<Architecture> build_outline(const Json& config, std::string_view where);

// What keeps a model type that people ask for from being modelled at all, in words; empty: nothing is known of it.
std::string_view unmodelled_feature(std::string_view model_type);

}  // namespace ullage::model
