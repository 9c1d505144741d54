#include "engines/sglang/graphs.h"

#include <algorithm>

namespace ullage::engines::sglang {
namespace {

// `first` to `last`, which is included, by `step`.
struct Run {
  std::int64_t first;
  std::int64_t last;
  std::int64_t step;
};

constexpr std::int64_t kAny = std::int64_t{1} << 40;

constexpr Run kPlain[] = {{1, 2, 1}, {4, 4, 1}, {8, 12, 4}, {16, 256, 8}, {272, 511, 16}, {512, kAny, 32}};
constexpr Run kDrafting[] = {{1, 8, 1}, {10, 32, 2}, {40, 64, 4}, {72, 256, 8}, {272, kAny, 16}};
// To 0.5.2.
constexpr Run kPlainBefore[] = {{1, 2, 1}, {4, 4, 1}, {8, 8, 1}, {16, 256, 8}, {272, 512, 16}};
constexpr Run kDraftingBefore[] = {{1, 8, 1}, {10, 32, 2}, {40, 63, 8}, {80, 160, 16}, {168, 256, 8}, {272, 512, 16}};
constexpr Run kPiecewise[] = {{4, 32, 4},      {48, 256, 16},     {288, 512, 32},
                              {576, 1024, 64}, {1280, 4096, 256}, {4608, kAny, 512}};

template <std::size_t N>
std::vector<std::int64_t> up_to(const Run (&runs)[N], std::int64_t most) {
  std::vector<std::int64_t> out;
  for (const Run& run : runs) {
    for (std::int64_t at = run.first; at <= std::min(run.last, most); at += run.step) out.push_back(at);
  }
  return out;
}

}  // namespace

std::vector<std::int64_t> captured_batches(const Options& options, std::int64_t requests) {
  if (options.disable_cuda_graph || options.cuda_graph_max_bs < 1) return {};
  const std::int64_t most = std::min(options.cuda_graph_max_bs, std::max<std::int64_t>(1, requests));
  const bool drafts = options.drafting != Drafting::none;
  const bool before = options.version < kReservesByUse;
  std::vector<std::int64_t> out = before ? (drafts ? up_to(kDraftingBefore, most) : up_to(kPlainBefore, most))
                                         : (drafts ? up_to(kDrafting, most) : up_to(kPlain, most));
  if (out.empty() || out.back() != most) out.push_back(most);
  return out;
}

std::int64_t piecewise_sizes(const Options& options, bool latent) {
  if (!options.piecewise_graphs) return 0;
  constexpr std::int64_t kMostOfLatent = 2048;
  std::int64_t most = latent ? kMostOfLatent : options.prefill_tokens();
  if (options.max_total_tokens) most = std::min(most, *options.max_total_tokens);
  return static_cast<std::int64_t>(up_to(kPiecewise, most).size());
}

}  // namespace ullage::engines::sglang
