// How a vision-language model sees an image: its size after resizing, the patches it is cut into, the tokens that these
// become, and the windows that attention keeps to.
#pragma once

#include <cstdint>
#include <vector>

#include "model/parameter.h"

namespace ullage::model {

// Makes one token of `merge` x `merge` patches.
struct PatchMerger {
  Norm norm;
  Linear up, down;
  bool norms_merged = false;  // the norm sees merged patches rather than single ones
};

// A tower whose blocks are the encoder's layers. All images are squares, each of a single frame.
struct Vision {
  std::int64_t patch = 0;   // pixels of a patch's side; 0: the model sees no images
  std::int64_t frames = 1;  // of a patch: a still image stands in all of them
  std::int64_t channels = 3;
  std::int64_t merge = 1;         // patches of a side that become one token
  std::int64_t window = 0;        // tokens of a window's side; 0: no layer has windows
  std::int64_t least_pixels = 0;  // of an image, by the processor's defaults
  std::int64_t most_pixels = 0;
  std::int64_t size = 0;  // pixels of a side where none is given
  ParameterRef patch_weight, patch_bias;
  PatchMerger merger;
  Embedding positions;  // learned, for a grid of positions_of_side in each direction; may be empty
  std::int64_t positions_of_side = 0;
  std::vector<std::int64_t> deep_layers;  // whose output is merged, too, and added behind the text's first layers
  std::vector<PatchMerger> deep_mergers;
  std::size_t rotary_buffer = 0;     // among the model's buffers
  bool whole_images = false;         // they come as they are, all of the model's size, instead of patches and grids
  bool keeps_class = false;          // the token that stands for the whole image is one of its tokens
  std::int64_t feature_output = -1;  // the outputs of the blocks whose tokens are taken, embeddings first

  explicit operator bool() const { return patch > 0; }
  std::int64_t values_of_patch() const { return channels * frames * patch * patch; }
};

// Text in front of the image in a sequence: the mark that one begins.
inline constexpr std::int64_t kTokensBeforeImage = 1;

// Pixels of a side after smart_resize (transformers: models/qwen2_vl/image_processing_qwen2_vl.py): a multiple of what
// one token covers, within the bounds. `most_pixels` 0: the processor's.
std::int64_t resized_side(const Vision& vision, std::int64_t side, std::int64_t most_pixels);

// Of a resized image.
std::int64_t patches_of_side(const Vision& vision, std::int64_t side);
std::int64_t tokens_of_image(const Vision& vision, std::int64_t side);

struct Windows {
  std::vector<std::int64_t> patches;  // of each window that holds any, in order
  std::int64_t counted = 0;           // windows, empty ones at the right and at the bottom among them
};

// Of one image (transformers: vision_utils.py, get_vision_window_index).
Windows windows_of_image(const Vision& vision, std::int64_t patches_of_side);

}  // namespace ullage::model
