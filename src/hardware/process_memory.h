// What a process takes of a card besides its tensors: rows of data/process_memory.jsonl.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "hardware/gpu.h"

namespace ullage::hardware {

// Seen between `low_bytes` and `high_bytes`.
struct MeasuredBytes {
  std::int64_t low_bytes = 0;
  std::int64_t bytes = 0;
  std::int64_t high_bytes = 0;
  bool guess = false;
  std::string source;
};

struct ProcessMemory {
  MeasuredBytes context;                    // CUDA's, of one process on one card
  MeasuredBytes libraries;                  // kernels and handles that load as they are first used
  std::int64_t eager_bytes = 0;             // how much more kernels take where they are loaded at once
  std::int64_t cublas_workspace_bytes = 0;  // of each thread that multiplies matrices, from PyTorch's allocator
  std::string cublas_workspace_source;
};

// The first row of each part that fits the card; of a card that nobody named (nullptr) those for any.
Expected<ProcessMemory> parse_process_memory(std::string_view lines, const Gpu* gpu);

// The built-in rows.
ProcessMemory process_memory(const Gpu* gpu);

}  // namespace ullage::hardware
