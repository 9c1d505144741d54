// How many GPUs a command can see, by its environment or its container.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launch/shell_words.h"

namespace ullage::launch {

struct Visible {
  std::int64_t gpus = 0;
  std::string by;  // the variable
};

// By CUDA_VISIBLE_DEVICES and the like; nothing where none limits them.
std::optional<Visible> visible_gpus(const Variables& environment);

// Of `docker run --gpus`: "2", "device=0,1", "all" (nothing).
std::optional<std::int64_t> container_gpus(std::string_view value);

// Whether a variable is one of those that visible_gpus reads.
bool says_visible(std::string_view name);

}  // namespace ullage::launch
