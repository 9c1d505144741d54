// SGLang's defaults by release and card, what it refuses, and every rule by its name.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/bytes.h"
#include "data/engines_sglang.h"
#include "engines/outlined_model.h"
#include "engines/sglang/options.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"
#include "model/outline.h"

namespace ullage::engines::sglang {
namespace {

using ullage::testing::outlined;
using ullage::testing::OutlinedModel;

hardware::Gpu card_of(std::int64_t mib, std::string architecture = "") {
  hardware::Gpu out;
  out.memory_bytes = mib * kMiB;
  out.usable_bytes = out.memory_bytes;
  out.architecture = std::move(architecture);
  return out;
}

constexpr std::int64_t k4090 = 24564;
constexpr std::int64_t kL40s = 46068;
constexpr std::int64_t kH100 = 81559;
constexpr std::int64_t kH200 = 143771;
constexpr std::int64_t kB200 = 183359;

struct Named {
  const char* id;
  const char* item;
  Version version;
  std::int64_t mib;  // of the card; 0: none
  std::int64_t tp;
  double value;
  const char* architecture = "";
  const char* family = "";
};

constexpr Version k036{0, 3, 6};
constexpr Version k043{0, 4, 3};
constexpr Version k046{0, 4, 6};
constexpr Version k049{0, 4, 9};
constexpr Version k053{0, 5, 3};
constexpr Version k058{0, 5, 8};
constexpr Version k0510{0, 5, 10};

// The figures of sglang/srt/server_args.py and its kin, read at the commits that name these releases, and of the logs
// that the rows cite.
constexpr Named kNamed[] = {
    {"sglang-chunk-largest", "chunked_prefill_size", kNewest, kB200, 1, 16384},
    {"sglang-chunk-large", "chunked_prefill_size", kNewest, kH200, 1, 8192},
    {"sglang-chunk-middle", "chunked_prefill_size", kNewest, kL40s, 1, 4096},
    {"sglang-chunk-small", "chunked_prefill_size", kNewest, k4090, 1, 2048},
    {"sglang-chunk-large-0.4.8", "chunked_prefill_size", k049, kL40s, 1, 8192},
    {"sglang-chunk-small-0.4.8", "chunked_prefill_size", k049, k4090, 1, 2048},
    {"sglang-chunk-unknown-card", "chunked_prefill_size", kNewest, 0, 1, 4096},
    {"sglang-chunk-large-0.4", "chunked_prefill_size", k043, kH100, 1, 8192},
    {"sglang-chunk-small-0.4", "chunked_prefill_size", k043, k4090, 1, 2048},
    {"sglang-chunk-unknown-card-0.4", "chunked_prefill_size", k043, 0, 1, 8192},
    {"sglang-graph-batch-largest", "cuda_graph_max_bs", kNewest, kB200, 1, 512},
    {"sglang-graph-batch-large-tp4", "cuda_graph_max_bs", kNewest, kH100, 4, 512},
    {"sglang-graph-batch-large", "cuda_graph_max_bs", kNewest, kH100, 2, 256},
    {"sglang-graph-batch-middle-tp4", "cuda_graph_max_bs", kNewest, kL40s, 4, 160},
    {"sglang-graph-batch-middle", "cuda_graph_max_bs", kNewest, kL40s, 1, 32},
    {"sglang-graph-batch-small-tp4", "cuda_graph_max_bs", kNewest, k4090, 4, 80},
    {"sglang-graph-batch-small", "cuda_graph_max_bs", kNewest, k4090, 1, 24},
    {"sglang-graph-batch-small-0.5.3", "cuda_graph_max_bs", k053, k4090, 1, 16},
    {"sglang-graph-batch-smallest", "cuda_graph_max_bs", kNewest, 16384, 1, 8},
    {"sglang-graph-batch-b200-0.4.8", "cuda_graph_max_bs", k049, kB200, 1, 512},
    {"sglang-graph-batch-h200-0.4.8", "cuda_graph_max_bs", k049, kH200, 1, 256},
    {"sglang-graph-batch-h100-0.4.8", "cuda_graph_max_bs", k049, kH100, 1, 160},
    {"sglang-graph-batch-small-tp4-0.4.8", "cuda_graph_max_bs", k049, k4090, 4, 80},
    {"sglang-graph-batch-small-0.4.8", "cuda_graph_max_bs", k049, k4090, 2, 8},
    {"sglang-graph-batch-large-0.4", "cuda_graph_max_bs", k043, kH100, 1, 160},
    {"sglang-graph-batch-small-tp4-0.4", "cuda_graph_max_bs", k043, k4090, 4, 80},
    {"sglang-graph-batch-small-0.4", "cuda_graph_max_bs", k043, k4090, 1, 8},
    {"sglang-graph-batch-unknown-card", "cuda_graph_max_bs", kNewest, 0, 1, 160},
    {"sglang-fraction-unknown-card", "fraction_by_ranks", kNewest, 0, 8, 0.88},
    {"sglang-fraction-16", "fraction_by_ranks", k043, kH100, 16, 0.79},
    {"sglang-fraction-8", "fraction_by_ranks", k043, kH100, 8, 0.81},
    {"sglang-fraction-8-0.3", "fraction_by_ranks", k036, kH100, 8, 0.82},
    {"sglang-fraction-4", "fraction_by_ranks", k043, kH100, 4, 0.85},
    {"sglang-fraction-2", "fraction_by_ranks", k043, kH100, 2, 0.87},
    {"sglang-fraction-1", "fraction_by_ranks", k043, kH100, 1, 0.88},
    {"sglang-reserve-base", "reserve_base_mib", kNewest, kH100, 1, 512},
    {"sglang-reserve-b200-0.4.8", "reserve_base_mib", k049, kB200, 1, 32768},
    {"sglang-reserve-h200-0.4.8", "reserve_base_mib", k049, kH200, 1, 12288},
    {"sglang-reserve-h100-0.4.8", "reserve_base_mib", k049, kH100, 1, 9728},
    {"sglang-reserve-small-0.4.8", "reserve_base_mib", k049, k4090, 1, 2867.2},
    {"sglang-reserve-token", "reserve_mib_per_prefill_token", kNewest, kH100, 1, 1.5},
    {"sglang-reserve-token-0.4", "reserve_mib_per_prefill_token", k049, kH100, 1, 0},
    {"sglang-reserve-graph", "reserve_mib_per_graph_batch", kNewest, kH100, 1, 2},
    {"sglang-reserve-graph-0.4", "reserve_mib_per_graph_batch", k049, kH100, 1, 0},
    {"sglang-reserve-rank", "reserve_mib_per_rank", kNewest, kH100, 8, 128},
    {"sglang-reserve-rank-b200-0.4.8", "reserve_mib_per_rank", k049, kB200, 8, 0},
    {"sglang-reserve-rank-0.4.8", "reserve_mib_per_rank", k049, kH100, 8, 512},
    {"sglang-reserve-rank-small-0.4.8", "reserve_mib_per_rank", k049, k4090, 8, 102.4},
    {"sglang-reserve-floor", "reserve_floor_mib", kNewest, kH100, 1, 10240},
    {"sglang-reserve-floor-none", "reserve_floor_mib", kNewest, kL40s, 1, 0},
    {"sglang-reserve-dp-batch", "reserve_dp_mib_per_graph_batch", kNewest, kH100, 8, 3},
    {"sglang-reserve-dp-batch-none", "reserve_dp_mib_per_graph_batch", k049, kH100, 8, 0},
    {"sglang-reserve-dp-none", "reserve_dp_mib", kNewest, kH100, 8, 0},
    {"sglang-reserve-dp", "reserve_dp_mib", k049, kH100, 8, 4096},
    {"sglang-reserve-draft", "reserve_draft_mib", kNewest, kH100, 1, 4096},
    {"sglang-reserve-draft-0.4.8", "reserve_draft_mib", k058, kH100, 1, 2048},
    {"sglang-piecewise", "piecewise_graphs", k0510, kH100, 1, 1},
    {"sglang-piecewise-off", "piecewise_graphs", k058, kH100, 1, 0},
    {"sglang-reserve-piecewise", "reserve_mib_per_piecewise_size", kNewest, kH100, 1, 8},
    {"sglang-reserve-piecewise-latent", "reserve_piecewise_latent_mib", kNewest, kH100, 1, 1536},
    {"sglang-multimodal-size", "multimodal_factor", kNewest, kH100, 1, 0.95},
    {"sglang-multimodal-0.4.5", "multimodal_factor", k046, kH100, 1, 0.9},
    {"sglang-multimodal", "multimodal_factor", k043, kH100, 1, 0.95},
    {"sglang-prefill-tokens", "max_prefill_tokens", kNewest, kH100, 1, 16384},
    {"sglang-page-b200", "page_size", kNewest, kB200, 1, 64, "Blackwell GB100"},
    {"sglang-page-b300", "page_size", kNewest, kB200, 1, 64, "Blackwell Ultra GB110"},
    {"sglang-page", "page_size", kNewest, kH100, 1, 1, "Hopper GH100"},
    {"sglang-requests-per-context", "requests_per_context", kNewest, kH100, 1, 512},
    {"sglang-requests-least", "requests_least", kNewest, kH100, 1, 2048},
    {"sglang-requests-most", "requests_most", kNewest, kH100, 1, 4096},
    {"sglang-requests-drafting", "requests_drafting", kNewest, kH100, 1, 48},
    {"sglang-requests-drafting-0.4", "requests_drafting", k043, kH100, 1, 32},
    {"sglang-windows-gpt-oss", "window_pool", kNewest, kH100, 1, 1, "", "gpt_oss"},
    {"sglang-windows-mimo-v2", "window_pool", kNewest, kH100, 1, 1, "", "mimo_v2_flash"},
    {"sglang-windows-llama4", "window_pool", kNewest, kH100, 1, 1, "", "llama4"},
    {"sglang-windows-step3", "window_pool", kNewest, kH100, 1, 1, "", "step3p7"},
    {"sglang-windows-gemma4", "window_pool", kNewest, kH100, 1, 1, "", "gemma4"},
    {"sglang-windows-none", "window_pool", kNewest, kH100, 1, 0, "", "gemma3"},
    {"sglang-window-ratio", "swa_full_tokens_ratio", kNewest, kH100, 1, 0.8},
    {"sglang-state-ratio", "mamba_full_memory_ratio", kNewest, kH100, 1, 0.9},
    {"sglang-states-per-request", "states_per_request", kNewest, kH100, 1, 3},
    {"sglang-context-hopper-tp", "context_gib", kNewest, kH100, 2, 2.4, "Hopper GH100"},
    {"sglang-context-hopper", "context_gib", kNewest, kH100, 1, 0.6, "Hopper GH100"},
    {"sglang-context-tp", "context_gib", kNewest, k4090, 4, 0.9, "Ada AD102"},
    {"sglang-context", "context_gib", kNewest, k4090, 1, 0.4, "Ada AD102"},
    {"sglang-attention-workspace", "attention_workspace_gib", kNewest, kH100, 1, 0.6},
    {"sglang-graph-layer", "graph_mib_per_layer_and_size", kNewest, kH100, 1, 0.6},
    {"sglang-forward-hidden", "forward_hidden_copies", kNewest, kH100, 1, 3},
    {"sglang-forward-ffn", "forward_ffn_copies", kNewest, kH100, 1, 3},
    {"sglang-logit-bytes", "bytes_per_logit", kNewest, kH100, 1, 10},
};

TEST(SglangRules, HoldWhereTheirNamesSay) {
  std::set<std::string> named;
  for (const Named& row : kNamed) {
    const hardware::Gpu card = card_of(row.mib, row.architecture);
    const Surroundings around{row.version, row.mib > 0 ? &card : nullptr, row.tp, 1, Bound::middle, row.family};
    const Rule found = rule(row.item, around);
    EXPECT_EQ(found.id, row.id) << row.item;
    EXPECT_EQ(found.value, row.value) << row.id;
    named.insert(row.id);
  }
  for (const Rule& each : rules()) EXPECT_TRUE(named.contains(each.id)) << each.id << " has no row here";
}

TEST(SglangRules, HaveNamesOfTheirOwnARangeAndASource) {
  const auto read = serving::parse_rules(data::engines_sglang());
  ASSERT_TRUE(read) << to_string(read.error());
  std::set<std::string> ids;
  for (const Rule& each : *read) {
    EXPECT_TRUE(ids.insert(each.id).second) << each.id;
    EXPECT_FALSE(each.source.empty());
    const bool ranged = each.kind == serving::RuleKind::measured_fit || each.low < each.high;
    EXPECT_EQ(each.low <= each.value && each.value <= each.high, true) << each.id;
    EXPECT_TRUE(!ranged || each.low < each.high) << each.id;
  }
}

TEST(SglangRules, SayEachItemForAnySurroundings) {
  for (const Rule& named : rules()) {
    for (const Version version : {k036, k043, k046, k049, k053, k058, kNewest}) {
      for (const std::int64_t mib : {std::int64_t{0}, k4090, kL40s, kH100, kH200, kB200}) {
        const hardware::Gpu card = card_of(mib);
        EXPECT_FALSE(rule(named.item, {version, mib > 0 ? &card : nullptr, 2, 2}).id.empty()) << named.item;
      }
    }
  }
}

struct Share {
  Version version;
  std::int64_t mib;
  std::int64_t tp;
  double share;
};

// By hand from sglang/srt/server_args.py:
constexpr Share kShares[] = {
    {k036, kH100, 8, 0.82},
    {k043, kH100, 8, 0.81},
    {k046, kH100, 2, 0.87},
    {k046, kH200, 8, (143771 - 13312) / 143771.0},
    {{0, 4, 7}, kH100, 1, 0.88},
    {{0, 4, 7}, kB200, 8, 0.79},
    // The lesser of 0.88 + 49,152 x 0.12 / 143,771 = 0.921 and 1 - 18,432 / 143,771 = 0.872.
    {{0, 4, 7}, kH200, 1, 1 - 18432 / 143771.0},
    {k049, kH100, 1, 0.874},  // 9.5 + 0.5 GiB of 81,559 MiB
    {k049, k4090, 2, 0.875},  // 2.8 + 0.2 GiB of 24,564 MiB
    {k049, kB200, 8, 0.821},  // 32 GiB of 183,359 MiB
    {k058, kH100, 1, 0.835},  // 512 + 8,192 x 1.5 + 256 x 2 + 128 = 13,440 MiB
    {k058, kH100, 8, 0.818},  // 512 + 12,288 + 1,024 + 1,024 = 14,848
    {k058, k4090, 1, 0.847},  // 512 + 3,072 + 48 + 128 = 3,760
    {k058, kL40s, 1, 0.851},  // 512 + 6,144 + 64 + 128 = 6,848
    {k0510, kH100, 1, 0.83},  // and 58 sizes of prefill graphs at 8: 13,904
};

TEST(SglangFraction, IsWhatTheReleaseTakesForTheCard) {
  const OutlinedModel llama = outlined("meta-llama/Llama-3.1-8B-Instruct");
  for (const Share& row : kShares) {
    const hardware::Gpu card = card_of(row.mib);
    Flags flags;
    flags.engine_version = to_string(row.version);
    flags.tp = row.tp;
    const auto out = resolve(flags, {llama.architecture, llama.config, &card});
    ASSERT_TRUE(out) << to_string(out.error());
    EXPECT_DOUBLE_EQ(out->options.mem_fraction_static, row.share) << to_string(row.version) << " " << row.mib;
  }
}

// Drafting takes 2 GiB more, 4 from 0.5.10 on; attention in eight copies 3 MiB for each of 512 x 8 and half as much
// again above 300: 14,848 + 18,432 = 33,280 MiB of 81,559.
TEST(SglangFraction, LeavesMoreToDraftsAndCopies) {
  const OutlinedModel model = outlined("deepseek-ai/DeepSeek-V3");
  const hardware::Gpu card = card_of(kH100);
  Flags flags;
  flags.engine_version = "0.5.8";
  flags.tp = 8;
  flags.speculative_algorithm = "nextn";
  const auto drafts = resolve(flags, {model.architecture, model.config, &card});
  ASSERT_TRUE(drafts) << to_string(drafts.error());
  EXPECT_DOUBLE_EQ(drafts->options.mem_fraction_static, 0.793);  // 14,848 + 2,048
  EXPECT_EQ(drafts->options.max_running_requests, 48);
  EXPECT_EQ(drafts->options.speculative_num_draft_tokens, 4);
  flags.speculative_algorithm.reset();
  flags.dp = 8;
  flags.enable_dp_attention = true;
  const auto copies = resolve(flags, {model.architecture, model.config, &card});
  ASSERT_TRUE(copies) << to_string(copies.error());
  EXPECT_DOUBLE_EQ(copies->options.mem_fraction_static, 0.592);
  EXPECT_EQ(copies->options.chunked_prefill_size, 1024);
  EXPECT_EQ(copies->options.attention_ranks(), 1);
}

// 0.88 x 0.95 in March 2025, as https://github.com/sgl-project/sglang/pull/4826 shows; later by the size of the tower:
// 27 layers 1,152 wide are 1.42 of the one that counts, so that 0.95 x (1 - 0.1 x 0.424) is left.
TEST(SglangFraction, LeavesMoreToModelsThatSee) {
  const OutlinedModel seeing = outlined("google/gemma-3-4b-it");
  const hardware::Gpu card = card_of(kH100);
  Flags flags;
  flags.engine_version = "0.4.4";
  EXPECT_NEAR(resolve(flags, {seeing.architecture, seeing.config, &card})->options.mem_fraction_static, 0.836, 1e-9);
  flags.engine_version = "0.5.8";
  const double tower = 27.0 * 1152 * 1152 / (24.0 * 1024 * 1024);
  EXPECT_NEAR(resolve(flags, {seeing.architecture, seeing.config, &card})->options.mem_fraction_static,
              0.835 * 0.95 * (1 - 0.1 * (tower - 1)), 1e-9);
  flags.mem_fraction_static = 0.8;
  EXPECT_EQ(resolve(flags, {seeing.architecture, seeing.config, &card})->options.mem_fraction_static, 0.8);
}

TEST(SglangResolve, RefusesWhatSglangRefuses) {
  const OutlinedModel llama = outlined("meta-llama/Llama-3.1-8B-Instruct");
  const auto refused = [&](const Flags& flags) {
    const auto out = resolve(flags, {llama.architecture, llama.config, nullptr});
    return out ? std::string() : out.error().where;
  };
  Flags flags;
  EXPECT_EQ(refused(flags), "");
  flags.tp = 3;
  EXPECT_EQ(refused(flags), "--tp");
  flags = {};
  flags.pp = 33;
  EXPECT_EQ(refused(flags), "--pp");
  flags = {};
  flags.tp = 4;
  flags.ep = 3;
  EXPECT_EQ(refused(flags), "--ep");
  flags = {};
  flags.tp = 4;
  flags.dp = 3;
  flags.enable_dp_attention = true;
  EXPECT_EQ(refused(flags), "--dp");
  for (const double share : {0.0, 1.0, 1.5}) {
    flags = {};
    flags.mem_fraction_static = share;
    EXPECT_EQ(refused(flags), "--mem-fraction-static") << share;
  }
  flags = {};
  flags.chunked_prefill_size = 1000;
  flags.page_size = 64;
  EXPECT_EQ(refused(flags), "--chunked-prefill-size");
  flags = {};
  flags.swa_full_tokens_ratio = 1.5;
  EXPECT_EQ(refused(flags), "--swa-full-tokens-ratio");
  flags = {};
  flags.speculative_algorithm = "EAGLE3";
  EXPECT_EQ(refused(flags), "--speculative-algorithm");
  flags = {};
  flags.kv_cache_dtype = "fp4_e2m1";
  EXPECT_EQ(refused(flags), "--kv-cache-dtype");
  flags = {};
  flags.engine_version = "0.5.6,0.5.9";
  EXPECT_EQ(refused(flags), "--engine-version");
  flags.engine_version = "new";
  EXPECT_EQ(refused(flags), "--engine-version");
}

TEST(SglangResolve, PagesFollowTheKernels) {
  const OutlinedModel model = outlined("deepseek-ai/DeepSeek-V3");
  Flags flags;
  flags.attention_backend = "flashmla";
  EXPECT_EQ(resolve(flags, {model.architecture, model.config, nullptr})->options.page_size, 64);
  flags.attention_backend = "cutlass_mla";
  EXPECT_EQ(resolve(flags, {model.architecture, model.config, nullptr})->options.page_size, 128);
  flags.attention_backend = "fa3";
  EXPECT_EQ(resolve(flags, {model.architecture, model.config, nullptr})->options.page_size, 1);
  const OutlinedModel sparse = outlined("deepseek-ai/DeepSeek-V3.2");
  EXPECT_EQ(resolve({}, {sparse.architecture, sparse.config, nullptr})->options.page_size, 64);
}

}  // namespace
}  // namespace ullage::engines::sglang
