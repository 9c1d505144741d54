// What vision-language models share: a tower and a text model in one architecture, and image tokens that are put among
// embeddings of text.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

// The nested configuration under `key`; `otherwise`, which outlives it, where there is none.
JsonObject nested_config(const JsonObject& whole, std::string_view key, const Json& otherwise);

// A tower's tokens, `key` of its configuration, must be as wide as the text's.
Expected<void> check_widths(const Fields& tower, std::string_view key, std::int64_t tower_width,
                            std::int64_t text_width);

// Puts the tower in front of the text model, whose names move from "model." to "model.language_model.".
Architecture join(Architecture tower, Architecture text, std::string_view family);

// The text's embeddings with the images' tokens in their places, and what stays bound beside them.
struct Placed {
  Tensor embeds;
  Tensor images;
  Tensor image_mask;
  Tensor video_mask;
};

// get_placeholder_mask, which compares token ids and counts, for images and, where the model knows them, for videos;
// then masked_scatter.
Placed place_images(Modules& m, const Tensor& ids, Tensor embeds, Tensor images, bool knows_videos);

// The text model's layers and its last norm, behind the rotary embedding of `position_ids`.
struct TextRun {
  LayerFunction layer = nullptr;
  // The functions that make masks, and the layers, are given the positions, too.
  bool shares_positions = false;
  // What becomes of a layer's output; may be empty.
  std::function<Tensor(std::int64_t layer, Tensor hidden)> between;
};
Tensor run_text_model(Modules& m, const Architecture& arch, Tensor embeds, Tensor position_ids, const TextRun& run);

// Logits and loss.
Output finish_language_model(Modules& m, const Architecture& arch, const Tensor& hidden, const Batch& batch);

}  // namespace ullage::model
