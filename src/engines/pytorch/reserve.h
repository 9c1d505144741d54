// What PyTorch's allocator reserves for a training step, and where a card is full.
//
// A step is not alone: what earlier steps left in the allocator decides which segments it finds. So the program is
// played from its first allocation on: set-up, the first step, in which an optimizer makes its states, and the step
// that is meant until it takes no further segments.
#pragma once

#include <cstdint>
#include <optional>

#include "engines/pytorch/train.h"
#include "memory/caching_allocator.h"

namespace ullage::engines::pytorch {

struct ReserveQuestion {
  const TrainRun& step;
  const TrainRun* first = nullptr;  // the same set-up's first step; none where the step is the first
  std::uint32_t peak_event = 0;     // the step's highest moment of allocated bytes
  memory::AllocatorSettings settings;
  memory::CardMemory card;
};

struct FullCard {
  bool in_first_step = false;  // else in the step that is meant
  std::uint32_t event = 0;     // the allocation that failed, in that step's timeline
  memory::OutOfMemory why;
};

struct Reserved {
  std::int64_t bytes = 0;  // highest within the step
  // At its peak of allocated bytes:
  std::int64_t idle_bytes = 0;  // in segments and pages that nothing uses
  std::int64_t block_bytes =
      0;                   // of the blocks in use, with tails that were not split off (torch.cuda.memory_allocated)
  bool gave_back = false;  // cached memory had to be given back to go on
  std::optional<FullCard> full;  // the others say nothing then
};

// Cost: a replay of two to five steps.
Reserved reserve(const ReserveQuestion& question);

}  // namespace ullage::engines::pytorch
