#include "plan/fit_estimate.h"

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "engines/transformers/serve.h"
#include "hardware/process_memory.h"
#include "memory/attribution.h"

namespace ullage::plan {
namespace {

namespace hf = engines::transformers;
using memory::Component;
using model::BaseFormat;

BaseFormat format_of(std::string_view quantization) {
  if (quantization == "int8") return BaseFormat::int8;
  return quantization == "nf4" ? BaseFormat::nf4 : BaseFormat::plain;
}

// One layer of each kind that is used, as they first come; the last kind at the end, where the cache is fullest.
model::Architecture one_of_each(const model::Architecture& architecture) {
  model::Architecture out = architecture;
  if (!architecture.cache_of.empty()) return out;
  out.layers.clear();
  for (const std::uint8_t kind : architecture.layers) {
    if (std::find(out.layers.begin(), out.layers.end(), kind) == out.layers.end()) out.layers.push_back(kind);
  }
  const std::uint8_t last = architecture.layers.back();
  std::erase(out.layers, last);
  out.layers.push_back(last);
  return out;
}

// From Ampere on, and where nothing is known, attention runs in kernels that need much the same; before it others do
// (tensor/attention_kernel.h). One run tells for all cards of a class.
tensor::Capability class_of(tensor::Capability capability) {
  constexpr tensor::Capability kTuring{7, 5};
  constexpr tensor::Capability kAmpere{8, 0};
  return capability.major > 0 && capability.major < kAmpere.major ? kTuring : kAmpere;
}

std::int64_t part(const memory::Moment& moment, Component component) {
  return moment.by_component[static_cast<std::size_t>(component)];
}

// Prompts that the parabola goes through: beyond the rows from which kernels for weights of four bits work otherwise.
std::array<std::int64_t, 3> prompts(const model::Architecture& architecture) {
  constexpr std::int64_t kLongest = 16384;
  const std::int64_t most = architecture.max_positions > 0 ? std::min(architecture.max_positions, kLongest) : kLongest;
  const std::int64_t longest = std::max<std::int64_t>(most, 8);
  return {longest / 4, longest / 2, longest};
}

std::int64_t bytes_of(const std::vector<model::Parameter>& parameters, const std::vector<model::ParameterRole>& roles,
                      BaseFormat base, DType dtype) {
  std::int64_t out = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) out += hf::resident_bytes(parameters[i], roles[i], base, dtype);
  return out;
}

}  // namespace

FitCard fit_card(const hardware::Gpu& gpu) {
  const hardware::ProcessMemory process = hardware::process_memory(&gpu);
  FitCard out;
  out.free_bytes = std::max<std::int64_t>(0, gpu.usable_bytes - process.context.bytes);
  out.usable_bytes = out.free_bytes - process.libraries.bytes - process.cublas_workspace_bytes;
  if (gpu.compute_capability) out.capability = {gpu.compute_capability->major, gpu.compute_capability->minor};
  return out;
}

FitEstimate::FitEstimate(const model::Architecture& architecture, DType dtype, std::int64_t new_tokens,
                         BaseFormat as_it_is)
    : architecture_(architecture),
      short_(one_of_each(architecture)),
      dtype_(dtype),
      new_tokens_(new_tokens),
      as_it_is_(as_it_is) {
  per_token_ = hf::kept_bytes_per_token(architecture, options({}));
}

hf::ServeOptions FitEstimate::options(std::string_view quantization) const {
  hf::ServeOptions out;
  out.dtype = dtype_;
  out.weights = quantization.empty() ? as_it_is_ : format_of(quantization);
  const bool eager = !architecture_.kinds.empty() && architecture_.kinds[0].attention.eager_only;
  if (eager) out.attention = engines::pytorch::AttentionImpl::eager;
  return out;
}

double FitEstimate::Besides::at(double prompt) const {
  double out = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    double term = bytes[i];
    for (std::size_t j = 0; j < tokens.size(); ++j) {
      if (i != j) term *= (prompt - tokens[j]) / (tokens[i] - tokens[j]);
    }
    out += term;
  }
  return out;
}

Expected<const FitEstimate::Weights*> FitEstimate::weights(std::string_view quantization) {
  const auto known = weights_.find(quantization);
  if (known != weights_.end()) return &known->second;
  const auto plan = hf::plan_weights(architecture_, options(quantization));
  if (!plan) return tl::unexpected<Error>(plan.error());
  Weights out;
  for (std::size_t i = 0; i < architecture_.kinds.size(); ++i) {
    const model::LayerKind& kind = architecture_.kinds[i];
    out.layers.push_back(bytes_of(kind.parameters, plan->kinds[i], plan->base, dtype_));
  }
  for (std::size_t i = 0; i < architecture_.parameters.size(); ++i) {
    const model::Parameter& parameter = architecture_.parameters[i];
    out.outside.push_back(hf::resident_bytes(parameter, plan->globals[i], plan->base, dtype_));
  }
  for (const std::uint8_t kind : architecture_.layers) out.all += out.layers[kind];
  for (const std::int64_t bytes : out.outside) out.all += bytes;
  return &(weights_[quantization] = std::move(out));
}

Expected<const FitEstimate::Besides*> FitEstimate::besides(std::string_view quantization,
                                                           tensor::Capability capability) {
  const tensor::Capability kernels = class_of(capability);
  const ByKernels key{quantization, kernels.major};
  const auto known = besides_.find(key);
  if (known != besides_.end()) return &known->second;
  Besides out;
  hf::ServeOptions asked = options(quantization);
  asked.card = kernels;
  // Without bf16 the run is in fp16, which takes as much and has other kernels.
  const bool has_bf16 = kernels.major >= hardware::kBf16Since.major;
  if (asked.dtype == DType::bf16 && !has_bf16) asked.dtype = DType::f16;
  asked.new_tokens = 1;
  const std::array<std::int64_t, 3> lengths = prompts(architecture_);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    asked.seq_len = lengths[i];
    const auto served = hf::run_generation(short_, asked);
    if (!served) return tl::unexpected<Error>(served.error());
    const engines::pytorch::TrainRun& run = served->run;
    const memory::Moment peak = memory::peak_between(run.timeline, run.before_step, run.after_forward);
    const std::int64_t held =
        part(peak, Component::parameters) + part(peak, Component::buffers) + part(peak, Component::kv_cache);
    out.tokens[i] = static_cast<double>(lengths[i]);
    out.bytes[i] = static_cast<double>(peak.bytes - held);
  }
  return &(besides_[key] = out);
}

Expected<const FitEstimate::Shares*> FitEstimate::shares(const FitSetup& setup) {
  const auto key = std::pair(setup.quantization, setup.cards);
  const auto known = shares_.find(key);
  if (known != shares_.end()) return &known->second;
  const auto held = weights(setup.quantization);
  if (!held) return tl::unexpected<Error>(held.error());
  const hf::ServeOptions asked = options(setup.quantization);
  const auto plan = hf::plan_weights(architecture_, asked);
  if (!plan) return tl::unexpected<Error>(plan.error());
  const std::vector<std::int64_t> free(static_cast<std::size_t>(setup.cards),
                                       std::numeric_limits<std::int64_t>::max() / 4);
  const hf::Placement placement = hf::place(architecture_, *plan, asked, hf::DeviceMap::balanced, free);
  Shares out;
  out.cards.resize(free.size());
  out.largest = placement.largest_bytes;
  const auto on = [&](std::int32_t device) -> Share& {
    return out.cards[static_cast<std::size_t>(std::max(device, 0))];
  };
  for (std::size_t i = 0; i < placement.layers.size(); ++i) {
    Share& share = on(placement.layers[i]);
    share.weights += (*held)->layers[architecture_.layers[i]];
    ++share.layers;
  }
  for (std::size_t i = 0; i < placement.parameters.size(); ++i)
    on(placement.parameters[i]).weights += (*held)->outside[i];
  for (std::size_t i = 0; i < free.size(); ++i) out.cards[i].counted = placement.bytes[i];
  return &(shares_[key] = std::move(out));
}

std::string_view FitEstimate::held_as(std::string_view quantization, const FitCard& card) const {
  const hardware::ComputeCapability has{card.capability.major, card.capability.minor};
  const bool too_old = has.major > 0 && has < hardware::kFp8Since;
  return too_old && options(quantization).weights == BaseFormat::fp8 ? std::string_view("none") : quantization;
}

Expected<std::int64_t> FitEstimate::headroom(const FitSetup& asked, std::int64_t tokens, const FitCard& card) {
  const FitSetup setup{held_as(asked.quantization, card), asked.cards};
  const hardware::ComputeCapability has{card.capability.major, card.capability.minor};
  const BaseFormat format = options(setup.quantization).weights;
  if (format == BaseFormat::int8 && has.major > 0 && has < hardware::kInt8WeightsSince)
    return fail(ErrorCode::unsupported, "--quantization", "int8 is not for cards of this compute capability");
  const auto held = weights(setup.quantization);
  if (!held) return tl::unexpected<Error>(held.error());
  const std::int64_t prompt = std::max<std::int64_t>(1, tokens - new_tokens_);
  const auto all = static_cast<std::int64_t>(architecture_.layers.size());
  // Weights alone are too many more often than not.
  if ((*held)->all / setup.cards > card.usable_bytes) return card.usable_bytes - (*held)->all / setup.cards;
  const auto rest = besides(setup.quantization, card.capability);
  if (!rest) return tl::unexpected<Error>(rest.error());
  const auto working = static_cast<std::int64_t>((*rest)->at(static_cast<double>(prompt)));
  const auto left = [&](std::int64_t weights, std::int64_t layers) {
    const std::int64_t cache = per_token_ * layers / all;
    const std::int64_t decoding = cache * tokens + cache / std::max<std::int64_t>(layers, 1) * tokens;
    return card.usable_bytes - weights - std::max(cache * prompt + working, decoding);
  };
  if (setup.cards == 1) return left((*held)->all, all);
  const auto shared = shares(setup);
  if (!shared) return tl::unexpected<Error>(shared.error());
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  // bitsandbytes' quantizers leave a tenth free, and the first card keeps room for the largest module.
  const double given = static_cast<double>(card.free_bytes) * (hf::leaves_a_tenth(format) ? 0.9 : 1);
  for (std::size_t i = 0; i < (*shared)->cards.size(); ++i) {
    const Share& share = (*shared)->cards[i];
    const std::int64_t room = static_cast<std::int64_t>(given) - (i == 0 ? (*shared)->largest : 0) - share.counted;
    least = std::min({least, left(share.weights, share.layers), room < 0 ? room : least});
  }
  return least;
}

std::int64_t FitEstimate::weight_bytes(std::string_view quantization) {
  const auto held = weights(quantization);
  return held ? (*held)->all : 0;
}

speed::DecodeWork FitEstimate::decode_work(std::string_view quantization, std::int64_t tokens) {
  const std::int64_t active = model::active_parameter_count(architecture_);
  const double share = static_cast<double>(active) / static_cast<double>(model::parameter_count(architecture_));
  speed::DecodeWork out;
  out.weight_bytes = static_cast<std::int64_t>(static_cast<double>(weight_bytes(quantization)) * share);
  out.cache_bytes = multiply_saturated(per_token_, tokens);
  out.flops = speed::decode_flops(active);
  return out;
}

}  // namespace ullage::plan
