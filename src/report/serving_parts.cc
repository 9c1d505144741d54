#include "report/serving_parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "engines/serving/rank_weights.h"

namespace ullage::report {

ModelFacts served_model(const model::Architecture& architecture, DType dtype) {
  ModelFacts out;
  out.name = architecture.name;
  out.family = architecture.family;
  out.parameters = model::parameter_count(architecture);
  out.active_parameters = model::active_parameter_count(architecture);
  out.parameter_bytes = out.parameters * size_of(dtype);
  return out;
}

DeviceFacts served_device(const hardware::Gpu* gpu, std::int64_t gpus) {
  DeviceFacts out;
  out.count = gpus;
  if (gpu == nullptr) return out;
  out.name = gpu->id;
  out.title = gpu->name;
  out.memory_bytes = gpu->memory_bytes;
  out.usable_bytes = gpu->usable_bytes;
  out.usable_range = memory::Range{gpu->usable_range_bytes.low, gpu->usable_range_bytes.high};
  return out;
}

memory::Range range_of(std::int64_t a, std::int64_t b) { return {std::min(a, b), std::max(a, b)}; }

void name_stage(RankLine& out, std::size_t stage, const hardware::Gpu* gpu, std::int64_t used_bytes) {
  out.name = fmt::format("pp{}", stage);
  if (gpu == nullptr) return;
  const std::int64_t usable = gpu->usable_bytes - used_bytes;
  out.gpu = gpu->id;
  out.usable_bytes = gpu->usable_bytes;
  out.fit.fits = *out.peak.process_bytes <= usable;
  out.fit.headroom_bytes = usable - *out.peak.process_bytes;
}

void add_stages(Prediction& out, std::size_t stages, std::size_t tightest, std::int64_t gpus,
                const std::function<RankLine(std::size_t)>& rank_of) {
  out.total_process_bytes = *out.peak.process_bytes * gpus;
  if (stages == 1) return;
  out.worst_rank = tightest;
  out.total_process_bytes = 0;
  for (std::size_t i = 0; i < stages; ++i) {
    out.ranks.push_back(rank_of(i));
    out.ranks.back().count = gpus / static_cast<std::int64_t>(stages);
    *out.total_process_bytes += *out.ranks.back().peak.process_bytes * out.ranks.back().count;
  }
}

Message stored_as(const model::Architecture& architecture, const model::Quantisation& quantisation) {
  const bool padded = engines::serving::has_mxfp4_experts(architecture, &quantisation);
  return {padded ? Text::assume_vllm_stored_padded : Text::assume_vllm_stored, {{"format", quantisation.name}}};
}

}  // namespace ullage::report
