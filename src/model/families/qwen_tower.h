// The towers of Qwen's vision-language models: how they are configured, their parameters and the way of an image
// through them.
#pragma once

#include <string>
#include <vector>

#include "model/config_fields.h"
#include "model/modules.h"

namespace ullage::model {

struct TowerConfig {
  Vision vision;
  std::int64_t depth = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t out_hidden = 0;  // of the tokens that it gives
  std::int64_t heads = 0;
  Activation activation = Activation::silu;
  NormKind norm = NormKind::layer;
  bool gated = false;
  bool patch_bias = false;
  std::vector<bool> windowed;  // by block; empty: none is
  std::int64_t positions = 0;  // learned ones, as many as a square grid has; 0: none
  // Names of the modules of a block's feed-forward and of a merger, the norm first.
  std::vector<std::string> mlp_names;
  std::vector<std::string> merger_names;
};

TowerConfig read_qwen2_tower(Fields& fields);
TowerConfig read_qwen2_5_tower(Fields& fields);
TowerConfig read_qwen3_tower(Fields& fields);

// The tower alone, as the encoder of an architecture without any other layer.
Architecture qwen_tower(const TowerConfig& c);

struct TowerOutput {
  Tensor last;               // of the last block, [patches, hidden]
  Tensor merged;             // [tokens, hidden of the text]
  std::vector<Tensor> deep;  // the same of earlier blocks
};

// `pixels` in the tower's type.
TowerOutput forward_qwen_tower(Modules& m, const Architecture& arch, Tensor pixels, const Images& images);

}  // namespace ullage::model
