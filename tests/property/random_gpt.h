// Small configurations of the GPT-style decoders at random.
#pragma once

#include "base/json.h"
#include "random_step.h"

namespace ullage::testing {

// One of the families of tests/truth/family_gpt.py, or one whose code is published beside its weights.
Json gpt_style_config(Dice& dice, std::int64_t most_layers);

}  // namespace ullage::testing
