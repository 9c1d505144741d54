// What the configuration classes of the decoders in the manner of Llama make of left-out fields, and what is refused;
// asked in the lab (transformers 5.12, models/*/configuration_*.py).
#include <gtest/gtest.h>

#include <string>

#include "model/family.h"

namespace ullage::model {
namespace {

Expected<Architecture> build(std::string_view text) {
  const auto config = parse_json(text, "c.json");
  EXPECT_TRUE(config) << text;
  return build_architecture(*config, "c.json");
}

struct Default {
  const char* config;
  std::int64_t parameters;
};

class Defaults : public ::testing::TestWithParam<Default> {};

TEST_P(Defaults, GiveAsManyParametersAsTheClass) {
  const auto built = build(GetParam().config);
  ASSERT_TRUE(built) << to_string(built.error());
  EXPECT_EQ(parameter_count(*built), GetParam().parameters);
}

constexpr Default kDefaults[] = {
    {R"({"model_type": "qwen2", "num_hidden_layers": 2})", 1919987712},
    {R"({"model_type": "qwen2", "num_hidden_layers": 2, "num_key_value_heads": null, "vocab_size": 1000})", 683520000},
    {R"({"model_type": "qwen3", "num_hidden_layers": 2})", 1919963648},
    {R"({"model_type": "phi3", "num_hidden_layers": 2})", 423508992},
    {R"({"model_type": "gemma", "num_hidden_layers": 2})", 1340095488},
    {R"({"model_type": "gemma2", "num_hidden_layers": 2})", 745558272},
    {R"({"model_type": "gemma3_text", "num_hidden_layers": 2})", 759862528},
    {R"({"model_type": "exaone4", "num_hidden_layers": 2})", 1375752704},
    {R"({"model_type": "seed_oss", "num_hidden_layers": 2})", 2134945792},
    {R"({"model_type": "seed_oss", "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": null,
        "head_dim": null})",
     2084614144},
    {R"({"model_type": "smollm3", "num_hidden_layers": 2})", 418916352},
    {R"({"model_type": "olmo", "num_hidden_layers": 2})", 816840704},
    {R"({"model_type": "olmo2", "num_hidden_layers": 2})", 816877568},
    {R"({"model_type": "olmo3", "num_hidden_layers": 2})", 816877568},
    {R"({"model_type": "granite", "num_hidden_layers": 2})", 666914816},
    {R"({"model_type": "stablelm", "num_hidden_layers": 2})", 416179200},
    {R"({"model_type": "stablelm", "num_hidden_layers": 2, "qk_layernorm": true, "use_parallel_residual": true})",
     416179200},
    {R"({"model_type": "cohere", "num_hidden_layers": 2})", 3741343744},
    {R"({"model_type": "cohere", "num_hidden_layers": 2, "use_qk_norm": true})", 3741376512},
    {R"({"model_type": "cohere2", "num_hidden_layers": 2})", 3741343744},
    {R"({"model_type": "starcoder2", "num_hidden_layers": 2})", 342959104},
    {R"({"model_type": "starcoder2", "num_hidden_layers": 2, "use_bias": false})", 342915072},
};
INSTANTIATE_TEST_SUITE_P(Decoders, Defaults, ::testing::ValuesIn(kDefaults));

struct Refused {
  const char* config;
  const char* error;
};

class RefusedDecoder : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedDecoder, SaysWhereAndWhat) {
  const auto built = build(GetParam().config);
  ASSERT_FALSE(built);
  EXPECT_EQ(to_string(built.error()), GetParam().error);
}

constexpr Refused kRefused[] = {
    {R"({"model_type": "gemma2", "sliding_window": null})",
     "c.json: sliding_window: is null, but layers have a sliding window; give its width in tokens"},
    {R"({"model_type": "gemma3_text", "use_bidirectional_attention": true})",
     "c.json: use_bidirectional_attention: attention to what follows is not modelled; set it to false"},
    {R"({"model_type": "gemma3_text", "rope_parameters": {"rope_type": "default"}})",
     "c.json: rope_parameters: has no full_attention; give a form such as {\"rope_type\": \"default\"} for it and one "
     "for "
     "the other layers"},
    {R"({"model_type": "qwen3", "num_hidden_layers": 3, "layer_types": ["full_attention"]})",
     "c.json: layer_types: 1 entries for 3 layers; give one for each"},
    {R"({"model_type": "qwen2", "num_hidden_layers": 1, "layer_types": ["linear_attention"]})",
     "c.json: layer_types: 'linear_attention' is not modelled; expected full_attention or sliding_attention"},
    {R"({"model_type": "qwen2", "num_hidden_layers": 1, "layer_types": ["sliding_attention"]})",
     "c.json: sliding_window: is null, but layers have a sliding window; give its width in tokens"},
    {R"({"model_type": "gemma", "num_key_value_heads": null})",
     "c.json: num_key_value_heads: is null; give a value, or leave the field out for 16"},
    {R"({"model_type": "phi3", "rope_scaling": {"rope_type": "linear", "factor": 2.0}})",
     "c.json: rope_scaling: Phi-3 stretches positions by longrope only; set that type or leave the field out"},
    {R"({"model_type": "phi3", "partial_rotary_factor": 0.01})",
     "c.json: partial_rotary_factor: 0 of 96 dimensions are turned; the rotary embedding turns pairs, set a factor "
     "that "
     "gives an even number"},
    {R"({"model_type": "stablelm", "partial_rotary_factor": 1.5})",
     "c.json: partial_rotary_factor: 1.5 is no share of a head; expected more than 0 and at most 1"},
    {R"({"model_type": "stablelm", "head_dim": 64})",
     "c.json: head_dim: 64 x 32 heads is not hidden_size 2560; StableLM has no other width"},
    {R"({"model_type": "smollm3", "no_rope_layers": [1, 0]})",
     "c.json: no_rope_layers: expected a list with 0 or 1 for each of 36 layers"},
    {R"({"model_type": "seed_oss", "attention_dropout": null})",
     "c.json: attention_dropout: is null; give a value, or leave the field out for 0.1"},
    {R"({"model_type": "exaone4", "sliding_window": null})",
     "c.json: layer_types: is absent and sliding_window is null; list full_attention for each layer"},
    {R"({"model_type": "exaone4", "sliding_window_pattern": 0})",
     "c.json: sliding_window_pattern: 0 is out of range; expected a whole number from 1 to 10000"},
    {R"({"model_type": "olmo", "clip_qkv": "x"})", "c.json: clip_qkv: not a number"},
};
INSTANTIATE_TEST_SUITE_P(Decoders, RefusedDecoder, ::testing::ValuesIn(kRefused));

TEST(LayerTypes, GiveTheirLayersAWindowAndAMask) {
  const auto built = build(R"({"model_type": "qwen3", "num_hidden_layers": 3, "use_sliding_window": true,
      "sliding_window": 64, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]})");
  ASSERT_TRUE(built) << to_string(built.error());
  ASSERT_EQ(built->mask_windows.size(), 2u);
  EXPECT_FALSE(built->mask_windows[0]);
  EXPECT_EQ(built->mask_windows[1], 64);
  EXPECT_EQ(built->kind_of(0).attention.window, 64);
  EXPECT_EQ(built->kind_of(0).attention.mask, 1);
  EXPECT_FALSE(built->kind_of(1).attention.window);
  EXPECT_EQ(built->kind_of(1).attention.mask, 0);
}

TEST(LayerTypes, ThatNoLayerHasGetNoFrequencies) {
  const auto built = build(R"({"model_type": "gemma3_text", "num_hidden_layers": 2})");
  ASSERT_TRUE(built) << to_string(built.error());
  EXPECT_EQ(built->rotary.dim, 0);
  EXPECT_EQ(built->local_rotary.dim, 256);
  EXPECT_EQ(built->buffers.size(), 3u);
  EXPECT_EQ(built->mask_windows.size(), 2u);
}

TEST(Phi3, TakesItsFactorFromTheFormOfTheRotaryEmbeddingFirst) {
  const auto built = build(R"({"model_type": "phi3", "partial_rotary_factor": 0.5,
      "rope_scaling": {"rope_type": "longrope", "partial_rotary_factor": 0.75}})");
  ASSERT_TRUE(built) << to_string(built.error());
  EXPECT_EQ(built->rotary.dim, 72);
}

}  // namespace
}  // namespace ullage::model
