#include "report/loading.h"

#include <algorithm>

#include "base/bytes.h"

namespace ullage::report {
namespace {

// transformers reads so many tensors at once (core_model_loading.py, GLOBAL_WORKERS).
constexpr std::size_t kReaders = 4;

// Of each tensor that the file holds, in its weights' type.
std::vector<std::int64_t> stored_bytes(const model::Architecture& architecture, DType dtype) {
  std::vector<std::int64_t> out;
  model::for_each_parameter(architecture, [&](const model::Parameter& parameter, const std::string&, int) {
    if (!parameter.tied_to) out.push_back(multiply_saturated(parameter.elements(), size_of(dtype)));
  });
  for (const model::Buffer& buffer : architecture.buffers) {
    if (!buffer.persistent) continue;
    std::int64_t bytes = size_of(buffer.in_model_dtype ? dtype : buffer.dtype);
    for (const std::int64_t size : buffer.sizes) bytes = multiply_saturated(bytes, size);
    out.push_back(bytes);
  }
  return out;
}

std::int64_t sum(const std::vector<std::int64_t>& bytes, std::size_t count) {
  std::int64_t out = 0;
  for (std::size_t i = 0; i < std::min(count, bytes.size()); ++i) out = add_saturated(out, bytes[i]);
  return out;
}

Text rule_of(Load load) {
  switch (load) {
    case Load::torch: return Text::assume_load_torch;
    case Load::safetensors: return Text::assume_load_safetensors;
    case Load::meta: return Text::assume_load_meta;
  }
  return Text::assume_load_torch;
}

}  // namespace

Host host_memory(const model::Architecture& architecture, const engines::pytorch::TrainOptions& options, Load load) {
  std::vector<std::int64_t> stored = stored_bytes(architecture, options.dtype);
  std::sort(stored.begin(), stored.end(), std::greater<>());
  const std::int64_t weights = sum(stored, stored.size());
  Host out;
  out.rules.push_back({rule_of(load), {{"weights", Bytes{weights}}}});
  switch (load) {
    case Load::torch: out.peak_bytes = multiply_saturated(2, weights); break;
    case Load::safetensors: out.peak_bytes = weights; break;
    case Load::meta: out.peak_bytes = sum(stored, kReaders); break;
  }
  out.load_peak_bytes = out.peak_bytes;
  return out;
}

}  // namespace ullage::report
