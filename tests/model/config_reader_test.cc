// Defaults and meanings are those of transformers 5.12's configuration classes, asked in the lab
// (models/{llama,mistral,gpt2}/configuration_*.py, modeling_rope_utils.py).
#include <gtest/gtest.h>

#include "model/families/gpt2.h"
#include "model/families/llama.h"

namespace ullage::model {
namespace {

template <class Read>
auto read(Read reader, std::string_view text) {
  const auto config = parse_json(text, "c");
  EXPECT_TRUE(config) << text;
  auto got = reader(JsonObject(*config, "c"));
  EXPECT_TRUE(got) << to_string(got.error());
  return got.value();
}

DecoderConfig llama(std::string_view text) { return read(read_llama_config, text); }
DecoderConfig mistral(std::string_view text) { return read(read_mistral_config, text); }
Gpt2Config gpt2(std::string_view text) { return read(read_gpt2_config, text); }

TEST(LlamaConfig, Defaults) {
  const DecoderConfig c = llama("{}");
  EXPECT_EQ(c.vocab, 32000);
  EXPECT_EQ(c.hidden, 4096);
  EXPECT_EQ(c.intermediate, 11008);
  EXPECT_EQ(c.layers, 32);
  EXPECT_EQ(c.heads, 32);
  EXPECT_EQ(c.kv_heads, 32);
  EXPECT_EQ(c.head_dim, 128);
  EXPECT_EQ(c.max_positions, 2048);
  EXPECT_FALSE(c.window);
  EXPECT_EQ(c.activation, Activation::silu);
  EXPECT_EQ(c.attention_dropout, 0);
  EXPECT_FALSE(c.qkv_bias || c.output_bias || c.mlp_bias || c.tied);
  EXPECT_EQ(c.rotary.type, "default");
  EXPECT_EQ(c.rotary.dim, 128);
}

TEST(LlamaConfig, NullsThatTheClassAllowsMeanTheDerivedValue) {
  const DecoderConfig c = llama(R"({"num_attention_heads": 16, "head_dim": null, "num_key_value_heads": null,
      "attention_dropout": null, "rope_scaling": null, "rope_parameters": null, "pretraining_tp": null})");
  EXPECT_EQ(c.head_dim, 256);
  EXPECT_EQ(c.kv_heads, 16);
  EXPECT_EQ(c.attention_dropout, 0);
  EXPECT_EQ(c.rotary.type, "default");
}

TEST(LlamaConfig, WidthOfAHeadNeedNotFollowFromTheHiddenSize) {
  const DecoderConfig c = llama(R"({"hidden_size": 2048, "num_attention_heads": 32, "head_dim": 128})");
  EXPECT_EQ(c.head_dim, 128);
  EXPECT_EQ(c.rotary.dim, 128);
}

TEST(LlamaConfig, KeysThatDoNotMatterMayHoldAnything) {
  EXPECT_EQ(
      llama(R"({"rms_norm_eps": NaN, "time_step_limit": [0.0, Infinity], "x": -Infinity, "bos_token_id": {}})").hidden,
      4096);
}

TEST(LlamaConfig, OfAKeyThatIsThereTwiceTheLastCounts) {
  EXPECT_EQ(llama(R"({"hidden_size": 64, "hidden_size": 128, "num_attention_heads": 4})").hidden, 128);
}

// Beyond 64 KiB another parser's object is used on the way.
TEST(LlamaConfig, ALargeFileIsReadLikeASmallOne) {
  std::string labels = "{";
  for (int i = 0; i < 10'000; ++i) labels += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"LABEL\"";
  const std::string text =
      R"({"hidden_size": 64, "num_attention_heads": 4, "hidden_size": 128, "eps": NaN, "id2label": )" + labels + "}}";
  EXPECT_EQ(llama(text).hidden, 128);
  const auto cut = parse_json(text.substr(0, text.size() - 1), "c");
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().where, "c: byte " + std::to_string(text.size()));
}

TEST(MistralConfig, Defaults) {
  const DecoderConfig c = mistral("{}");
  EXPECT_EQ(c.vocab, 32000);
  EXPECT_EQ(c.hidden, 4096);
  EXPECT_EQ(c.intermediate, 14336);
  EXPECT_EQ(c.layers, 32);
  EXPECT_EQ(c.heads, 32);
  EXPECT_EQ(c.kv_heads, 8);
  EXPECT_EQ(c.head_dim, 128);
  EXPECT_EQ(c.max_positions, 131072);
  EXPECT_EQ(c.window, 4096);
  EXPECT_EQ(c.activation, Activation::silu);
  EXPECT_FALSE(c.qkv_bias || c.output_bias || c.mlp_bias || c.tied);
}

TEST(MistralConfig, AnExplicitNullTurnsTheWindowOff) {
  EXPECT_FALSE(mistral(R"({"sliding_window": null})").window);
  EXPECT_EQ(mistral(R"({"sliding_window": 32768})").window, 32768);
}

TEST(MistralConfig, HasNoBiasesWhateverTheFieldsSay) {
  const DecoderConfig c = mistral(R"({"attention_bias": true, "mlp_bias": true})");
  EXPECT_FALSE(c.qkv_bias || c.output_bias || c.mlp_bias);
}

TEST(MistralConfig, HeadsNeedNotDivideWhereTheirWidthIsGiven) {
  EXPECT_EQ(mistral(R"({"hidden_size": 100, "num_attention_heads": 8, "head_dim": 16})").head_dim, 16);
}

TEST(Gpt2Config, Defaults) {
  const Gpt2Config c = gpt2("{}");
  EXPECT_EQ(c.vocab, 50257);
  EXPECT_EQ(c.positions, 1024);
  EXPECT_EQ(c.hidden, 768);
  EXPECT_EQ(c.layers, 12);
  EXPECT_EQ(c.heads, 12);
  EXPECT_EQ(c.inner, 3072);
  EXPECT_EQ(c.activation, Activation::gelu_new);
  EXPECT_EQ(c.residual_dropout, 0.1);
  EXPECT_EQ(c.embedding_dropout, 0.1);
  EXPECT_EQ(c.attention_dropout, 0.1);
  EXPECT_FALSE(c.upcast);
  EXPECT_TRUE(c.tied);
}

TEST(Gpt2Config, EitherSpellingAndTheCommonOneWins) {
  const Gpt2Config own = gpt2(R"({"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 77})");
  const Gpt2Config common =
      gpt2(R"({"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 77})");
  for (const Gpt2Config& c : {own, common}) {
    EXPECT_EQ(c.hidden, 64);
    EXPECT_EQ(c.layers, 3);
    EXPECT_EQ(c.heads, 4);
    EXPECT_EQ(c.positions, 77);
    EXPECT_EQ(c.inner, 256);
  }
  EXPECT_EQ(gpt2(R"({"hidden_size": 96, "n_embd": 768})").hidden, 96);
  EXPECT_EQ(gpt2(R"({"n_embd": 768, "hidden_size": 96})").hidden, 96);
}

TEST(Gpt2Config, InnerWidthMayBeNull) {
  EXPECT_EQ(gpt2(R"({"n_inner": null, "n_embd": 96})").inner, 384);
  EXPECT_EQ(gpt2(R"({"n_inner": 100})").inner, 100);
}

struct Form {
  std::string_view config;
  std::string_view type;
  std::int64_t original;
};

class RotaryForm : public ::testing::TestWithParam<Form> {};

TEST_P(RotaryForm, IsRead) {
  const Rotary rotary = llama(GetParam().config).rotary;
  EXPECT_EQ(rotary.type, GetParam().type);
  EXPECT_EQ(rotary.original_max_positions, GetParam().original);
  EXPECT_EQ(rotary.max_positions, 2048);
}

constexpr Form kForms[] = {
    {R"({"rope_scaling": {"type": "linear", "factor": 2.0}})", "linear", 2048},
    {R"({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}})", "dynamic", 2048},
    {R"({"rope_parameters": {"rope_type": "llama3", "original_max_position_embeddings": 8192}})", "llama3", 8192},
    {R"({"rope_parameters": {"rope_theta": 10000.0}})", "default", 2048},
    // Both names for the field: the old one wins unless it is empty. Both for the type: the new one wins.
    {R"({"rope_scaling": {"type": "linear"}, "rope_parameters": {"rope_type": "dynamic"}})", "linear", 2048},
    {R"({"rope_scaling": {}, "rope_parameters": {"rope_type": "dynamic"}})", "dynamic", 2048},
    {R"({"rope_scaling": null, "rope_parameters": {"rope_type": "yarn"}})", "yarn", 2048},
    {R"({"rope_scaling": {"type": "linear", "rope_type": "yarn"}})", "yarn", 2048},
    // The length before stretching: top level over nested, and only where the type stretches.
    {R"({"rope_scaling": {"type": "yarn", "original_max_position_embeddings": 55}})", "yarn", 55},
    {R"({"rope_scaling": {"type": "yarn", "original_max_position_embeddings": 55}, "original_max_position_embeddings": 77})",
     "yarn", 77},
    {R"({"rope_scaling": {"type": "longrope"}, "original_max_position_embeddings": 77})", "longrope", 77},
    {R"({"rope_scaling": {"type": "dynamic", "original_max_position_embeddings": 55}})", "dynamic", 2048},
    // LlamaRotaryEmbedding turns whole heads whatever the fraction says.
    {R"({"partial_rotary_factor": 0.5})", "default", 2048},
};
INSTANTIATE_TEST_SUITE_P(Table, RotaryForm, ::testing::ValuesIn(kForms));

}  // namespace
}  // namespace ullage::model
