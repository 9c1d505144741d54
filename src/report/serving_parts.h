// What reports about engines that share a card out have in common.
#pragma once

#include <cstdint>
#include <functional>

#include "base/dtype.h"
#include "hardware/gpu.h"
#include "model/architecture.h"
#include "model/quantisation.h"
#include "report/prediction.h"

namespace ullage::report {

// Weights in `dtype`, whatever the checkpoint keeps them in.
ModelFacts served_model(const model::Architecture& architecture, DType dtype);

// `gpus` of one card; nullptr: one that nobody named.
DeviceFacts served_device(const hardware::Gpu* gpu, std::int64_t gpus);

memory::Range range_of(std::int64_t a, std::int64_t b);

// Stage `stage` of a pipeline: its name, and what its process leaves of each of its cards, of which others hold
// `used_bytes`. The peak must be there.
void name_stage(RankLine& out, std::size_t stage, const hardware::Gpu* gpu, std::int64_t used_bytes);

// The stages of a pipeline differ; all GPUs of one are equal. `rank_of(stage)` gives the line of one. Totals count all
// of `gpus`.
void add_stages(Prediction& out, std::size_t stages, std::size_t tightest, std::int64_t gpus,
                const std::function<RankLine(std::size_t)>& rank_of);

// That weights are held as the checkpoint stores them; experts in MXFP4 padded.
Message stored_as(const model::Architecture& architecture, const model::Quantisation& quantisation);

}  // namespace ullage::report
