// What Qwen's vision-language models do with images outside of their towers: tokens, and positions in time, height and
// width for all tokens.
#pragma once

#include "model/families/qwen_tower.h"

namespace ullage::model {

struct ImageFeatures {
  std::vector<Tensor> by_image;  // tokens, [tokens of an image, hidden]
  Tensor last;                   // as the tower gives them
  std::vector<Tensor> deep;
};

// get_image_features.
ImageFeatures qwen_image_features(Modules& m, const Architecture& arch, const Images& images);

// get_rope_index: time, height and width of each token, [3, batch, seq], sample by sample. How far text behind an image
// is moved on is remembered by the model.
Tensor qwen_token_positions(Modules& m, const Architecture& arch, const Images& images, const Tensor& ids);

}  // namespace ullage::model
