#include "engines/vllm/profile.h"

#include <algorithm>

#include "engines/serving/arithmetic.h"
#include "engines/serving/widths.h"

namespace ullage::engines::vllm {
namespace {

using serving::divide_up;
using serving::gib;
using serving::mib;

std::int64_t expert_workspace(const model::LayerKind& kind, std::int64_t hidden, const Options& options) {
  const std::int64_t ranks = options.enable_expert_parallel ? 1 : options.tensor_parallel_size;
  return serving::expert_workspace(kind, hidden, options.max_num_batched_tokens, ranks, size_of(options.dtype));
}

// FlashInfer's sampler, where it was there, does without the sort.
double logit_bytes(const Options& options, const Surroundings& around) {
  const Rule rule = vllm::rule("sampler_bytes_per_logit", around);
  if (!options.flashinfer_sampler) return rule.at(around.bound);
  return *options.flashinfer_sampler ? rule.low : rule.value;
}

}  // namespace

std::int64_t ProfilePeak::bytes() const {
  return std::max(sampler_bytes, forward_bytes) + workspace_bytes + encoder_bytes + states_bytes + rest_bytes;
}

ProfilePeak profile_peak(const model::Architecture& architecture, const Options& options, const Stage& stage,
                         const Surroundings& around, bool expert_workspaces) {
  ProfilePeak out;
  const std::int64_t tokens = options.max_num_batched_tokens;
  const std::int64_t width = size_of(options.dtype);
  if (stage.heads && options.profiles_sampler) {
    const std::int64_t rows = std::min(options.max_num_seqs, tokens);
    const double a_logit = logit_bytes(options, around) + static_cast<double>(width - 2);
    out.sampler_bytes = static_cast<std::int64_t>(static_cast<double>(architecture.vocab * rows) * a_logit) +
                        2 * tokens * architecture.hidden * width;
  }
  const double ffn_copies = figure("forward_ffn_copies", around);
  const double hidden_copies = figure("forward_hidden_copies", around);
  for (std::int64_t layer = stage.first; layer < stage.last; ++layer) {
    const model::LayerKind& kind = architecture.kind_of(layer);
    const std::int64_t ffn = divide_up(serving::dense_width(kind), options.tensor_parallel_size);
    const double a_token =
        ffn_copies * static_cast<double>(ffn) + hidden_copies * static_cast<double>(architecture.hidden);
    out.forward_bytes =
        std::max(out.forward_bytes, static_cast<std::int64_t>(a_token * static_cast<double>(tokens * width)));
    if (expert_workspaces)
      out.workspace_bytes = std::max(out.workspace_bytes, expert_workspace(kind, architecture.hidden, options));
  }
  // As many tokens of images as the scheduler's budget has. V0 runs the encoder within the forward pass.
  if (options.encodes_images && stage.embeds && is_v1(options.version))
    out.encoder_bytes = tokens * architecture.hidden * width;
  out.rest_bytes = gib(figure("activation_rest_gib", around));
  return out;
}

std::int64_t largest_capture(const Options& options) {
  if (options.enforce_eager) return 0;
  const std::vector<std::int64_t>& given = options.cudagraph_capture_sizes;
  if (!given.empty()) return *std::max_element(given.begin(), given.end());
  if (!is_v1(options.version)) return std::min(options.max_num_seqs, options.largest_capture);
  const std::int64_t sequences = 2 * options.max_num_seqs * (1 + options.speculative_tokens);
  return std::min({sequences, options.largest_capture, options.max_num_batched_tokens});
}

std::int64_t captured_graphs(const Options& options) {
  if (options.enforce_eager) return 0;
  // Piecewise ones, and from some release on whole ones for decoding; V0 knows whole ones alone.
  const std::int64_t kinds = options.version >= kCapturesTwice ? 2 : 1;
  if (!options.cudagraph_capture_sizes.empty())
    return kinds * static_cast<std::int64_t>(options.cudagraph_capture_sizes.size());
  const std::int64_t largest = largest_capture(options);
  // 1, 2, 4, then multiples of 8; from some release on multiples of 16 from 256 on.
  constexpr std::int64_t kFirst = 3;
  constexpr std::int64_t kCoarseFrom = 256;
  if (largest < 8) return kinds * kFirst;
  if (options.version < kCapturesCoarsely) return kinds * (kFirst + largest / 8);
  const std::int64_t fine = std::min(largest, kCoarseFrom - 8) / 8;
  const std::int64_t coarse = largest >= kCoarseFrom ? (largest - kCoarseFrom) / 16 + 1 : 0;
  return kinds * (kFirst + fine + coarse);
}

std::int64_t load_peak_over_weights(const Options& options, const hardware::Gpu* card) {
  return gib(rule("load_peak_over_weights_gib", {options.version, card}).value);
}

std::int64_t graph_bytes(const Options& options, std::int64_t layers, const Surroundings& around) {
  const std::int64_t graphs = captured_graphs(options);
  if (graphs == 0) return 0;
  return gib(figure("graph_base_gib", around)) +
         mib(figure("graph_mib_per_layer_and_size", around) * static_cast<double>(layers * graphs));
}

}  // namespace ullage::engines::vllm
