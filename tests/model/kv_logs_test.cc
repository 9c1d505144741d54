// Bytes that engines printed for their caches, divided by the tokens they printed, are the architecture's bytes by
// token in that engine's rounding: to the last printed digit.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "model/cache.h"
#include "model/catalogue.h"
#include "model/outline.h"

namespace ullage::model {
namespace {

std::vector<Json> rows() {
  std::ifstream in(ULLAGE_TEST_DATA "/kv-logs.jsonl");
  EXPECT_TRUE(in);
  std::vector<Json> out;
  for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
  return out;
}

std::string model_of(const Json& row) { return row.value("model", "a shape of its own"); }

Architecture architecture_of(const Json& row) {
  auto built = row.contains("config") ? build_outline(row["config"], "config")
                                      : find_model(row["model"].get<std::string>()).and_then([](const auto& entry) {
                                          return build_outline(entry.config, entry.name);
                                        });
  EXPECT_TRUE(built) << model_of(row) << ": " << to_string(built.error());
  return built.value_or(Architecture{});
}

CacheType type(const std::string& name) { return parse_cache_type(name).value(); }

std::int64_t integer(const Json& row, const char* key, std::int64_t fallback) { return row.value(key, fallback); }

// vLLM's layers of one type in one block: all of them where there is one type, otherwise as many as the rarest type
// has, or as the most frequent where that is less than half as many again (vllm/v1/core/kv_cache_utils.py). The first
// generation put all layers into each block.
std::int64_t layers_of_block(const std::vector<CacheLine>& lines, bool groups) {
  std::int64_t all = 0;
  std::int64_t fewest = lines.front().layers;
  std::int64_t most = 0;
  for (const CacheLine& line : lines) {
    if (!line.tokens) continue;
    all += line.layers;
    fewest = std::min(fewest, line.layers);
    most = std::max(most, line.layers);
  }
  if (!groups) return all;
  return 2 * most < 3 * fewest ? most : fewest;
}

// Heads are divided, and copied where there are fewer of them; a latent vector is kept whole on every card.
TokenCache on_one_card(TokenCache cache, std::int64_t tensor_parallel) {
  if (cache.kind != TokenCacheKind::latent) cache.heads = std::max<std::int64_t>(1, cache.heads / tensor_parallel);
  return cache;
}

TEST(KvLogs, BlocksOfVllmAndSglangHoldWhatTheyPrint) {
  int counted = 0;
  for (const Json& row : rows()) {
    if ((row["engine"] != "vllm" && row["engine"] != "sglang") || !row.contains("bytes")) continue;
    const std::vector<CacheLine> lines = cache_lines(architecture_of(row));
    ASSERT_FALSE(lines.empty()) << model_of(row);
    const CacheType kept = type(row["type"]);
    const auto first = std::find_if(lines.begin(), lines.end(), [](const CacheLine& line) { return line.tokens; });
    const TokenCache cache = on_one_card(*first->tokens, row["tensor_parallel"]);
    const std::int64_t block = integer(row, "block_size", 1) * entry_bytes(cache, {kept, kept, DType::bf16}) *
                               layers_of_block(lines, row["layout"] == "groups");
    const std::int64_t blocks = row.contains("blocks") ? row["blocks"] : row["tokens"];
    const std::int64_t bytes = row["bytes"];
    const std::int64_t precision = row["precision"];
    EXPECT_LE(blocks * block, bytes + precision) << model_of(row) << " " << row["source"];
    EXPECT_GT((blocks + 1) * block, bytes - precision) << model_of(row) << " " << row["source"];
    ++counted;
  }
  EXPECT_GE(counted, 41);
}

// Where layers keep keys and values and others a state, vLLM lengthens the block, in steps of 16 tokens, until a page
// holds the state of one layer (vllm/model_executor/models/config.py, HybridAttentionMambaModelConfig).
TEST(KvLogs, BlocksOfHybridsHoldAState) {
  constexpr std::int64_t kStep = 16;
  int counted = 0;
  for (const Json& row : rows()) {
    if (!row.value("raised", false)) continue;
    const std::vector<CacheLine> lines = cache_lines(architecture_of(row));
    const auto keeps = std::find_if(lines.begin(), lines.end(), [](const CacheLine& line) { return line.tokens; });
    const auto recurs = std::find_if(lines.begin(), lines.end(), [](const CacheLine& line) { return line.state; });
    ASSERT_TRUE(keeps != lines.end() && recurs != lines.end()) << model_of(row);
    const CacheType kept = type(row["type"]);
    const std::int64_t cards = row["tensor_parallel"];
    const std::int64_t of_token = entry_bytes(on_one_card(*keeps->tokens, cards), {kept, kept, DType::bf16});
    const std::int64_t of_state = state_bytes(*recurs->state, {kept, kept, DType::bf16}) / cards;
    const std::int64_t steps = (of_state + of_token * kStep - 1) / (of_token * kStep);
    EXPECT_EQ(steps * kStep, row["block_size"].get<std::int64_t>()) << row["source"];
    EXPECT_EQ(integer(row, "tokens_of_whole_blocks", 0) % (steps * kStep), 0) << row["source"];
    ++counted;
  }
  EXPECT_GE(counted, 3);
}

// What llama.cpp keeps of a token: latent vectors, or (before it knew them, and where it is told not to) the heads'
// keys and values.
TokenCache kept_by_llama_cpp(const Architecture& architecture, TokenCache cache, const Json& row) {
  if (cache.kind != TokenCacheKind::latent || row.value("latent", false)) return cache;
  const Attention& a = architecture.kinds.front().attention;
  cache.heads = a.heads;
  cache.key_dim = a.latent.nope_dim + a.latent.rope_dim;
  cache.value_dim = a.latent.value_dim;
  return cache;
}

// ggml-cuda rounds the last row of a quantised tensor up to 512 elements; ik_llama.cpp's rows of keys are one head's.
std::int64_t padding(const TokenCache& cache, const CacheType& keys) {
  constexpr std::int64_t kRow = 512;
  const std::int64_t missing = (kRow - cache.key_dim % kRow) % kRow;
  return missing / keys.block * keys.block_bytes;
}

// Builds that know windows give their layers cells of their own: for the window of each sequence and a batch.
std::int64_t layer_bytes(const Json& row, const TokenCache& cache) {
  const CacheTypes types{type(row["keys"]), type(row["values"]), DType::f32};
  const std::int64_t cells = integer(row, "cells", 0);
  const std::int64_t bytes = entry_bytes(cache, types) * (cache.window ? integer(row, "window_cells", cells) : cells);
  return row.value("padded_rows", false) ? bytes + padding(cache, types.keys) : bytes;
}

TEST(KvLogs, CellsOfLlamaCppHoldWhatItPrints) {
  int counted = 0;
  for (const Json& row : rows()) {
    if (row["engine"] == "vllm" || row["engine"] == "sglang") continue;
    const Architecture architecture = architecture_of(row);
    const std::vector<CacheLine> lines = cache_lines(architecture);
    ASSERT_FALSE(lines.empty()) << model_of(row);
    std::int64_t bytes = 0;
    std::int64_t precision = 0;
    for (const std::int64_t of_device : row["bytes"]) bytes += of_device;
    for (const std::int64_t of_device : row["precision"]) precision += of_device;
    std::int64_t ours = 0;
    for (const CacheLine& line : lines) {
      const std::int64_t layers = line.layers + integer(row, "predicting_layers", 0);
      if (line.tokens) ours += layers * layer_bytes(row, kept_by_llama_cpp(architecture, *line.tokens, row));
    }
    // Where not all cards are printed, the part is one of whole layers.
    if (row.value("some_layers", false)) {
      const std::int64_t layer = ours / architecture.layer_count();
      ours = (bytes + layer / 2) / layer * layer;
    }
    EXPECT_LE(std::abs(bytes - ours), precision) << model_of(row) << " " << row["source"];
    ++counted;
  }
  EXPECT_GE(counted, 36);
}

}  // namespace
}  // namespace ullage::model
