// The message that PyTorch prints when a card is full.
#pragma once

#include <optional>
#include <string>

#include "memory/caching_allocator.h"

namespace ullage::memory {

// A size as PyTorch prints it: "512 bytes", "20.00 MiB"; a unit lasts up to 1024 of it.
std::string torch_size_text(std::int64_t bytes);

// The text of the exception for GPU 0, from "CUDA out of memory." on. `process_bytes` is what NVML reports for the
// process; without it that sentence is left out, as where there is no NVML. Known from release 1.4 on.
// Source: DeviceCachingAllocator::malloc (1.13.1, 2.6.0) and messages reported from other releases.
std::string out_of_memory_text(const OutOfMemory& failure, const CardMemory& card, TorchVersion version = {},
                               std::optional<std::int64_t> process_bytes = {});

}  // namespace ullage::memory
