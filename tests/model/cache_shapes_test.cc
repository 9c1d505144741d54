// What layers keep between tokens equals what transformers' cache holds behind a forward pass of the published class
// (tests/truth/record_caches.py), layer by layer, for every real configuration whose family is known.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "model/cache.h"
#include "model/catalogue.h"
#include "model/outline.h"

namespace ullage::model {
namespace {

constexpr std::int64_t kTokens = 7;  // of the recorded pass

// GPT-Neo's class keeps all keys though some layers look at a window of them, and so does what DynamicCache makes of
// Gemma 4 without shared layers (it takes layer_types up to -0, which are none).
bool keeps_beyond_window(const Architecture& architecture) {
  return architecture.family == "gpt_neo" || architecture.family.starts_with("gemma4");
}

std::vector<Json> by_layer(const Json& groups) {
  std::vector<Json> out;
  for (const Json& group : groups) out.insert(out.end(), group[0].get<std::size_t>(), group[1]);
  return out;
}

// The class spreads latent vectors out to the heads; where there is no way up from them, they are keys and values of
// one head.
TokenCache as_the_class_keeps(const Attention& attention, TokenCache cache) {
  if (cache.kind != TokenCacheKind::latent) return cache;
  if (attention.latent.value_dim == 0) {
    cache.value_dim = cache.key_dim;
    return cache;
  }
  cache.heads = attention.heads;
  cache.key_dim = attention.latent.nope_dim + attention.latent.rope_dim;
  cache.value_dim = attention.latent.value_dim;
  return cache;
}

void expect_tokens(const TokenCache& ours, const Json& theirs, bool with_window) {
  EXPECT_EQ(theirs["keys"], Json({1, ours.heads, kTokens, ours.key_dim}));
  EXPECT_EQ(theirs["values"], Json({1, ours.heads, kTokens, ours.value_dim}));
  if (with_window) {
    EXPECT_EQ(theirs.value("window", std::int64_t{0}), ours.window.value_or(0));
  }
}

std::int64_t elements(const Json& shape) {
  std::int64_t out = 1;
  for (const Json& size : shape) {
    if (size.is_number()) out *= size.get<std::int64_t>();
  }
  return out;
}

// Falcon's class copies keys and values to every head of the group first.
bool spreads_groups(const Architecture& architecture) { return architecture.family == "falcon"; }

void expect_layer(const Architecture& architecture, const LayerKind& kind, const Json& theirs) {
  const std::vector<TokenCache> caches = token_caches(kind);
  if (spreads_groups(architecture)) {
    ASSERT_FALSE(caches.empty());
    EXPECT_EQ(theirs["keys"][3], caches[0].key_dim);
    return;
  }
  if (theirs.contains("keys")) {
    ASSERT_FALSE(caches.empty());
    expect_tokens(as_the_class_keeps(kind.attention, caches[0]), theirs, !keeps_beyond_window(architecture));
  } else {
    // Text alone leaves what belongs to an image empty.
    for (const TokenCache& cache : caches) EXPECT_EQ(cache.kind, TokenCacheKind::cross);
  }
  if (theirs.contains("indexer_keys")) {
    ASSERT_GE(caches.size(), 2u);
    EXPECT_EQ(caches[1].kind, TokenCacheKind::indexer);
    EXPECT_EQ(theirs["indexer_keys"], Json({1, kTokens, caches[1].key_dim}));
  }
  EXPECT_EQ(theirs.contains("conv_states") || theirs.contains("recurrent_states"), kind.recurrent.has_value());
  if (!kind.recurrent) return;
  const Recurrent& state = *kind.recurrent;
  if (theirs.contains("conv_states")) {
    EXPECT_EQ(elements(theirs["conv_states"]), state.conv_channels * state.conv_kernel);
  }
  if (theirs.contains("recurrent_states")) {
    EXPECT_EQ(elements(theirs["recurrent_states"]), state.matrix_elements());
  }
}

// Layers that own what they keep, behind the encoder's.
std::vector<std::int64_t> owners(const Architecture& architecture) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = architecture.encoder_layers; i < architecture.layer_count(); ++i) {
    if (cache_owner(architecture, i) == i) out.push_back(i);
  }
  return out;
}

TEST(CacheShapes, AreThoseOfThePublishedClasses) {
  std::ifstream in(ULLAGE_TEST_DATA "/lab/caches.jsonl");
  ASSERT_TRUE(in);
  std::set<std::string> families;
  for (std::string line; std::getline(in, line);) {
    const Json row = Json::parse(line);
    const std::string name = row["model"];
    const auto built =
        find_model(name).and_then([](const CatalogueEntry& entry) { return build_outline(entry.config, entry.name); });
    if (!built) continue;  // of a family that is not known
    SCOPED_TRACE(name);
    const std::vector<Json> theirs = by_layer(row["layers"]);
    const std::vector<std::int64_t> ours = owners(*built);
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size() && !::testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE(ours[i]);
      expect_layer(*built, built->kind_of(ours[i]), theirs[i]);
    }
    if (::testing::Test::HasFailure()) return;
    families.insert(built->family);
  }
  EXPECT_GE(families.size(), 25u);
}

}  // namespace
}  // namespace ullage::model
