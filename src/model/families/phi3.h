// The forward pass and the configuration of Phi-3.
#pragma once

#include "model/families/decoder.h"

namespace ullage::model {

Expected<Architecture> build_phi3(const JsonObject& config);
// Gate and up in one product.
Tensor fused_mlp(Modules& m, const Mlp& module, Tensor hidden);
Output forward_phi3(Modules& modules, const Architecture& architecture, Batch batch);

}  // namespace ullage::model
