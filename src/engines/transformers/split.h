// One generation over several cards, as accelerate's hooks run it (hooks.py: AlignDevicesHook): every module computes
// where its weights are, and what it is called with is copied there first and lives as long as the call. The model as a
// whole gives its results back to where its inputs came from.
#pragma once

#include <vector>

#include "engines/transformers/device_map.h"
#include "engines/transformers/serve.h"

namespace ullage::engines::transformers {

// What each card sees of the generation, by its number. Modules that are left to the processor are taken to be on the
// last card, so that what is missing there shows.
std::vector<ServeRun> split_over_cards(const ServeRun& served, const model::Architecture& architecture,
                                       const ServeOptions& options, const Placement& placement, std::size_t cards);

}  // namespace ullage::engines::transformers
