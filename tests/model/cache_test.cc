// What layers keep between tokens, against published figures and arithmetic by hand.
#include "model/cache.h"

#include <gtest/gtest.h>

#include <string>

#include "model/catalogue.h"
#include "model/family.h"

namespace ullage::model {
namespace {

Architecture of(std::string_view name) {
  const auto built = find_model(name).and_then(
      [](const CatalogueEntry& entry) { return build_architecture(entry.config, entry.name); });
  EXPECT_TRUE(built) << name;
  return built.value_or(Architecture{});
}

CacheTypes types(std::string_view keys, std::string_view values) {
  return {parse_cache_type(keys).value(), parse_cache_type(values).value(), DType::bf16};
}

struct PerToken {
  const char* model;
  const char* type;
  std::int64_t bytes;
};

class BytesPerToken : public ::testing::TestWithParam<PerToken> {};

TEST_P(BytesPerToken, AreThosePublished) {
  const PerToken& row = GetParam();
  EXPECT_EQ(cache_bytes(of(row.model), types(row.type, row.type), 0, 0).per_token, row.bytes);
}

constexpr PerToken kRows[] = {
    // 2 x 32 layers x 8 heads x 128 x 2 bytes; vLLM's and llama.cpp's logs divide to it.
    {"meta-llama/Llama-3.1-8B", "bf16", 131072},
    {"meta-llama/Llama-3.1-8B", "fp8", 65536},
    {"meta-llama/Llama-3.1-8B", "fp32", 262144},
    {"meta-llama/Llama-3.1-8B", "q8_0", 131072 / 2 * 34 / 32},
    {"meta-llama/Llama-3.1-8B", "q4_0", 131072 / 2 * 18 / 32},
    // 61 layers of 512 + 64 in one vector, as vLLM keeps them.
    {"deepseek-ai/DeepSeek-V3", "bf16", 70272},
};
INSTANTIATE_TEST_SUITE_P(Published, BytesPerToken, ::testing::ValuesIn(kRows));

TEST(Cache, OfAQuarterGigabyteOfAWindowGrowsNoMore) {
  // Mistral 7B: 4096 tokens at most, of 131072 bytes.
  const Architecture mistral = of("mistralai/Mistral-7B-v0.1");
  const CacheTypes bf16 = cache_types(DType::bf16);
  EXPECT_EQ(cache_bytes(mistral, bf16, 100, 0).by_token, 100 * 131072);
  EXPECT_EQ(cache_bytes(mistral, bf16, 32768, 0).by_token, std::int64_t{4096} * 131072);
  EXPECT_EQ(cache_bytes(mistral, bf16, 0, 0).per_later_token, 0);
}

TEST(Cache, OfAnEncoderIsNone) { EXPECT_TRUE(cache_lines(of("google-bert/bert-base-uncased")).empty()); }

TEST(Cache, OfAnEncoderDecoderHasPartsForBoth) {
  const auto lines = cache_lines(of("openai/whisper-tiny"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].tokens->kind, TokenCacheKind::keys_values);
  EXPECT_EQ(lines[1].tokens->kind, TokenCacheKind::cross);
  EXPECT_EQ(lines[1].layers, 4);
  EXPECT_EQ(lines[1].tokens->elements(), 2 * 384);
}

// Mamba 2 as its paper's 2.7B: 80 heads of 64 with 128 states, a convolution of 4 over 5120 + 2 x 128 channels.
TEST(Cache, OfARecurrentLayerKnowsNoLength) {
  const Recurrent state{RecurrentKind::mamba2, 80, 64, 128, 1, 5376, 4, 0, false};
  EXPECT_EQ(state_bytes(state, cache_types(DType::bf16)), (80 * 64 * 128 + 5376 * 3) * 2);
  Recurrent wide = state;
  wide.matrix_in_fp32 = true;
  EXPECT_EQ(state_bytes(wide, cache_types(DType::bf16)), 80 * 64 * 128 * 4 + 5376 * 3 * 2);
}

TEST(Cache, OfLayersThatShareIsKeptOnce) {
  Architecture arch;
  arch.kinds.resize(1);
  arch.kinds[0].attention.kv_heads = 2;
  arch.kinds[0].attention.head_dim = 64;
  arch.layers = {0, 0, 0, 0};
  arch.cache_of = {0, 1, 1, 1};
  const auto lines = cache_lines(arch);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].layers, 2);
}

TEST(Cache, TypesHaveEnginesNames) {
  EXPECT_EQ(parse_cache_type("half")->name, "fp16");
  EXPECT_EQ(parse_cache_type("fp8_e5m2")->block_bytes, 1);
  EXPECT_EQ(parse_cache_type("q5_1")->block_bytes, 24);
  EXPECT_FALSE(parse_cache_type("q3_k"));
}

}  // namespace
}  // namespace ullage::model
