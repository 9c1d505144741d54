// How the weights arrive, and what that takes of the host's memory.
#pragma once

#include "engines/pytorch/options.h"
#include "model/architecture.h"
#include "report/prediction.h"

namespace ullage::report {

enum class Load : std::uint8_t {
  torch,        // model.load_state_dict(torch.load(file))
  safetensors,  // from_pretrained of safetensors files, then a copy to the card
  meta,         // the same with device_map: no model on the host
};

// Bytes of the host that weights take while they are loaded, and why; measured (tests/data/lab/host-peaks.jsonl) for
// the first two ways, read in transformers' source for the third.
Host host_memory(const model::Architecture& architecture, const engines::pytorch::TrainOptions& options, Load load);

}  // namespace ullage::report
