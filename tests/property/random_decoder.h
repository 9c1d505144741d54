// Small decoders in the manner of Llama at random, of every family.
#pragma once

#include "base/json.h"
#include "dice.h"

namespace ullage::testing {

// A configuration with 1 to `most_layers` layers and every feature of its family drawn.
Json random_decoder(Dice& dice, std::int64_t most_layers);

}  // namespace ullage::testing
