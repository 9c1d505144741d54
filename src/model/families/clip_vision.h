// CLIP's vision tower: trained as a classifier (CLIPForImageClassification), or as a part of another model.
#pragma once

#include <optional>

#include "base/json.h"
#include "model/families/vision_layers.h"
#include "model/family.h"

namespace ullage::model {

// Of a clip_vision_model's configuration.
VisionConfig read_clip_vision(Fields& fields);
// The layers' kind; their names begin with "encoder.layers.".
LayerKind clip_vision_layer(const VisionConfig& c);
// Parameters and buffers before the layers, and behind them, their names with `prefix` in front.
void add_clip_embeddings(Architecture& arch, const VisionConfig& c, const std::string& prefix);
void add_clip_post_norm(Architecture& arch, const VisionConfig& c, const std::string& prefix);

struct ClipVisionOutput {
  Tensor last;    // [batch, 1 + patches, hidden]
  Tensor pooled;  // [batch, hidden]
};

// The tower in the first `layers` layers of `arch`, on images [batch, channels, height, width]. `kept`, where given,
// gets what goes into the first layer and what comes out of each.
ClipVisionOutput clip_vision_tower(Modules& m, const Architecture& arch, std::int64_t layers, Tensor images,
                                   std::vector<Tensor>* kept = nullptr);

// A whole CLIP model's configuration, of which the vision part is built, or that part's alone.
Expected<Architecture> build_clip(const JsonObject& config);
Expected<Architecture> build_clip_vision(const JsonObject& config);
Output forward_clip_vision(Modules& m, const Architecture& arch, Batch batch);

}  // namespace ullage::model
