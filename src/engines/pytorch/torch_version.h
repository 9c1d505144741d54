// How PyTorch's releases differ in what a training step allocates. All else is modelled as of the newest.
#pragma once

#include <optional>
#include <string_view>

#include "memory/allocator_settings.h"

namespace ullage::engines::pytorch {

using memory::TorchVersion;

// Before it, zero_grad kept the gradients and optimizers went parameter by parameter.
inline constexpr TorchVersion kOldestTorch{2, 0};

// "2.1", "2.0.1"; nothing: that is no version.
std::optional<TorchVersion> parse_torch_version(std::string_view text);

// The newest release that people could run in that month (202310); nothing: one that none of the below tells from the
// newest, or older than kOldestTorch.
std::optional<TorchVersion> torch_of_month(std::int32_t month);

// Whether the foreach Adam and AdamW add epsilon out of place, so that the sums stand beside the square roots. In place
// since 2.1 (github.com/pytorch/pytorch/issues/97712, pull requests 104780 and 104898).
bool keeps_denominators(TorchVersion version);

// Whether the lists of foreach functions are grouped by type in ATen; before 2.1 in a dictionary, in order of
// appearance (github.com/pytorch/pytorch/pull/103912).
bool groups_in_hash_map(TorchVersion version);

// Whether transformers' Trainer, of its 4.54 and later, takes the fused AdamW by itself: from PyTorch 2.8 on
// (github.com/huggingface/transformers/pull/37358).
bool trainer_takes_fused(TorchVersion version);

}  // namespace ullage::engines::pytorch
