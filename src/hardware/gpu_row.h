// One line of data/gpus.jsonl.
#pragma once

#include <string_view>
#include <vector>

#include "hardware/gpu.h"
#include "hardware/usable_memory.h"

namespace ullage::hardware {

// Cells that are absent stay absent; a cell of the wrong type is an error that names it.
Expected<Gpu> parse_gpu_row(std::string_view line, const std::vector<UsableRule>& rules);

}  // namespace ullage::hardware
