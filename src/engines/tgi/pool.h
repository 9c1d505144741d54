// TGI: what the largest prefill leaves, less some room, becomes blocks, beside those that the prefill itself filled.
//
// Source: server/text_generation_server/models/flash_causal_lm.py (warmup), utils/import_utils.py
// (get_cuda_free_memory), models/globals.py (TGI_WIGGLE_ROOM), by release.
#pragma once

#include "engines/budget/options.h"
#include "engines/budget/pool.h"

namespace ullage::engines::tgi {

// From this release on the room is a part of the card, before of what is free.
inline constexpr budget::Version kRoomOfTheCard{3, 0, 0};

budget::Pool pool(const budget::Options& options, const budget::Holdings& held);

}  // namespace ullage::engines::tgi
