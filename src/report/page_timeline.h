// A timeline as the page's script reads it.
#pragma once

#include "base/json.h"
#include "memory/timeline.h"

namespace ullage::report {

// Columns as base64 of little-endian numbers, a tenth of what the same would take as JSON:
// event_block (u32), event_kind, event_component (u8), block_units (u32, in unit_bytes), block_op (u32), block_layer
// (i16), block_label, op_name, op_module (u16), op_phase (u8); names as texts and marks as {name, event}. Only what
// happens in device memory, and of that what allocates, frees or changes its purpose.
Json page_timeline(const memory::Timeline& timeline);

}  // namespace ullage::report
