// ViT, trained as a classifier (ViTForImageClassification).
#pragma once

#include "base/json.h"
#include "model/family.h"

namespace ullage::model {

Expected<Architecture> build_vit(const JsonObject& config);
Output forward_vit(Modules& m, const Architecture& arch, Batch batch);

}  // namespace ullage::model
