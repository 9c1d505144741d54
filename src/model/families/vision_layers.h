// What encoders of images share: reading what an image is, and layers whose norms precede what they are for.
#pragma once

#include "model/config_fields.h"
#include "model/modules.h"

namespace ullage::model {

// The fields that all of them have.
struct VisionConfig {
  std::int64_t hidden = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t intermediate = 0;
  std::int64_t image_size = 0;  // pixels of a side
  std::int64_t patch_size = 0;
  std::int64_t channels = 0;
  Activation activation = Activation::gelu;
  double dropout = 0;
  double attention_dropout = 0;

  std::int64_t patches() const { return (image_size / patch_size) * (image_size / patch_size); }
};

// One number for both sides, or a list of two that are equal.
std::int64_t read_side(Fields& fields, std::string_view key, std::int64_t fallback);
// image_size, patch_size and num_channels, which must leave a patch.
void read_image_fields(Fields& fields, VisionConfig& c, std::int64_t patch_size);
// id2label, or num_labels; a single one would be a regression.
std::int64_t read_classes(Fields& fields);

// [hidden, channels, patch, patch].
Conv2d patch_convolution(ParameterList& p, const std::string& name, const VisionConfig& c, bool bias);
// What is the same in the attention of all of them; without its projections.
Attention vision_attention(const VisionConfig& c);

// What the convolution gives, [batch, hidden, rows, columns], as [batch, patches, hidden].
Tensor as_sequence(Tensor patches);
// When projections are split into heads: each at once, or behind all three. It decides the order of their gradients.
enum class HeadSplit : std::uint8_t { at_once, at_the_end };

// The first `count` layers on hidden [batch, tokens, hidden]; `kept`, where given, gets what goes into the first and
// comes out of each.
Tensor run_vision_layers(Modules& m, const Architecture& arch, std::int64_t count, HeadSplit split, Tensor hidden,
                         std::vector<Tensor>* kept = nullptr);

}  // namespace ullage::model
