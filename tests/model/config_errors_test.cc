// What a wrong configuration is told, word for word.
#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "model/family.h"

namespace ullage::model {
namespace {

std::string error_of(std::string_view text) {
  const auto built =
      parse_json(text, "c.json").and_then([](const Json& config) { return build_architecture(config, "c.json"); });
  return built ? "" : to_string(built.error());
}

struct Wrong {
  std::string_view config;
  std::string_view error;
};

class ConfigError : public ::testing::TestWithParam<Wrong> {};

TEST_P(ConfigError, SaysWhereAndWhat) { EXPECT_EQ(error_of(GetParam().config), GetParam().error) << GetParam().config; }

constexpr Wrong kDocuments[] = {
    {"", "c.json: byte 1: not valid JSON here; check that the file is whole"},
    {R"({"model_type": "llama",)", "c.json: byte 24: not valid JSON here; check that the file is whole"},
    {R"({"a": NaN, "b": Infinity NaN})", "c.json: byte 28: not valid JSON here; check that the file is whole"},
    {R"({"a": 1e999})", "c.json: not valid JSON; a number or a text is out of range"},
    {"[1]", "c.json: expected a JSON object with the model's configuration"},
    {"\"llama\"", "c.json: expected a JSON object with the model's configuration"},
    {"null", "c.json: expected a JSON object with the model's configuration"},
};
INSTANTIATE_TEST_SUITE_P(Documents, ConfigError, ::testing::ValuesIn(kDocuments));

constexpr Wrong kTypes[] = {
    {"{}", "c.json: model_type: missing; is this the configuration of a model?"},
    {R"({"model_type": null})", "c.json: model_type: missing; is this the configuration of a model?"},
    {R"({"model_type": 7})", "c.json: model_type: expected a text"},
    {R"({"model_type": "lama"})",
     "c.json: model_type: model type 'lama' is not modelled; did you mean llama or llava?"},
    {R"({"model_type": "mixtrall"})",
     "c.json: model_type: model type 'mixtrall' is not modelled; did you mean mixtral or mistral?"},
    {R"({"model_type": "zzzzzzzz"})",
     "c.json: model_type: model type 'zzzzzzzz' is not modelled; "
     "`ullage models` counts the parameters of those that are"},
    {R"({"model_type": "new\nline and a very long name that goes on and on and never comes to an end"})",
     "c.json: model_type: model type 'new?line and a very long name that goes on and on and never ...' is not "
     "modelled; "
     "`ullage models` counts the parameters of those that are"},
    {R"({"model_type": "vlm", "text_config": {"model_type": "unheard_of"}})",
     "c.json: model_type: model type 'vlm' around the text model 'unheard_of' is not modelled; "
     "`ullage models` counts the parameters of those that are"},
    {R"({"model_type": "some_vlm", "llm_config": {}})",
     "c.json: llm_config: model_type: missing; is this the configuration of a model?"},
    {R"({"model_type": "some_vlm", "text_config": {"model_type": "llama", "hidden_size": 0}})",
     "c.json: text_config: hidden_size: 0 is out of range; expected a whole number from 1 to 16777216"},
};
INSTANTIATE_TEST_SUITE_P(ModelTypes, ConfigError, ::testing::ValuesIn(kTypes));

constexpr Wrong kNumbers[] = {
    {R"({"model_type": "llama", "hidden_size": 0})",
     "c.json: hidden_size: 0 is out of range; expected a whole number from 1 to 16777216"},
    {R"({"model_type": "llama", "vocab_size": -1})",
     "c.json: vocab_size: -1 is out of range; expected a whole number from 1 to 67108864"},
    {R"({"model_type": "llama", "num_hidden_layers": 1000000})",
     "c.json: num_hidden_layers: 1000000 is out of range; expected a whole number from 1 to 10000"},
    {R"({"model_type": "llama", "num_hidden_layers": 2.5})",
     "c.json: num_hidden_layers: 2.5 is not a whole number; expected a whole number from 1 to 10000"},
    {R"({"model_type": "llama", "hidden_size": "4096"})",
     "c.json: hidden_size: \"4096\" is not a number; expected a whole number from 1 to 16777216"},
    {R"({"model_type": "llama", "hidden_size": [4096]})",
     "c.json: hidden_size: [...] is not a number; expected a whole number from 1 to 16777216"},
    {R"({"model_type": "llama", "hidden_size": Infinity})",
     "c.json: hidden_size: \"Infinity\" is not a number; expected a whole number from 1 to 16777216"},
    {R"({"model_type": "llama", "hidden_size": null})",
     "c.json: hidden_size: is null; give a value, or leave the field out for 4096"},
    {R"({"model_type": "llama", "tie_word_embeddings": 1})", "c.json: tie_word_embeddings: expected true or false"},
    {R"({"model_type": "llama", "attention_bias": null})",
     "c.json: attention_bias: is null; give a value, or leave the field out for false"},
    {R"({"model_type": "llama", "attention_dropout": 1.0})",
     "c.json: attention_dropout: 1 is no dropout probability; expected 0 or more and less than 1"},
    {R"({"model_type": "llama", "attention_dropout": NaN})", "c.json: attention_dropout: not a number"},
    {R"({"model_type": "mistral", "num_key_value_heads": null})",
     "c.json: num_key_value_heads: is null; give a value, or leave the field out for 8"},
    {R"({"model_type": "mistral", "sliding_window": 0})",
     "c.json: sliding_window: 0 is out of range; expected a whole number from 1 to 1073741824"},
    {R"({"model_type": "gpt2", "n_embd": null})",
     "c.json: n_embd: is null; give a value, or leave the field out for 768"},
    {R"({"model_type": "gpt2", "resid_pdrop": -0.1})",
     "c.json: resid_pdrop: -0.1 is no dropout probability; expected 0 or more and less than 1"},
    {R"({"model_type": "llama", "hidden_size": 16777216, "num_attention_heads": 4096, "intermediate_size": 16777216, "num_hidden_layers": 10000})",
     "c.json: describes 1.97e+19 parameters, more than can be counted; check the dimensions and the number of layers"},
};
INSTANTIATE_TEST_SUITE_P(Numbers, ConfigError, ::testing::ValuesIn(kNumbers));

constexpr Wrong kHeads[] = {
    {R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 24})",
     "c.json: num_attention_heads: 24 heads do not divide hidden_size 4096; change one of them"},
    {R"({"model_type": "llama", "hidden_size": 100, "num_attention_heads": 3, "head_dim": 16})",
     "c.json: num_attention_heads: 3 heads do not divide hidden_size 100; change one of them"},
    {R"({"model_type": "mistral", "hidden_size": 100, "num_attention_heads": 16})",
     "c.json: num_attention_heads: 16 heads do not divide hidden_size 100; change one of them"},
    {R"({"model_type": "llama", "num_key_value_heads": 5})",
     "c.json: num_key_value_heads: 5 key and value heads do not divide 32 query heads; set a divisor"},
    {R"({"model_type": "mistral", "num_attention_heads": 4})",
     "c.json: num_key_value_heads: 8 key and value heads do not divide 4 query heads; set a divisor"},
    {R"({"model_type": "llama", "num_attention_heads": 1024, "head_dim": 65536})",
     "c.json: head_dim: 1024 heads of 65536 are wider than any model; expected at most 16777216 in all"},
    {R"({"model_type": "llama", "head_dim": 127})",
     "c.json: head_dim: 127 is odd; the rotary embedding turns pairs, set an even one"},
    {R"({"model_type": "gpt2", "n_head": 7})", "c.json: n_head: 7 heads do not divide n_embd 768; change one of them"},
};
INSTANTIATE_TEST_SUITE_P(Heads, ConfigError, ::testing::ValuesIn(kHeads));

constexpr Wrong kImagesAndSound[] = {
    {R"({"model_type": "vit", "image_size": [224, 160]})",
     "c.json: image_size: only squares are modelled; give one number of pixels, or the same twice"},
    {R"({"model_type": "clip_vision_model", "image_size": 24})",
     "c.json: patch_size: 32 pixels do not fit into images of 24; make one of them fit"},
    {R"({"model_type": "vit", "num_labels": 1})",
     "c.json: num_labels: a single label makes a regression, which is not modelled; give at least 2"},
    {R"({"model_type": "vit", "id2label": {"0": "cat"}})",
     "c.json: id2label: a single label makes a regression, which is not modelled; give at least 2"},
    {R"({"model_type": "clip", "vision_config": {"num_attention_heads": 7}})",
     "c.json: vision_config: num_attention_heads: 7 heads do not divide hidden_size 768; change one of them"},
    {R"({"model_type": "whisper", "encoder_layerdrop": 0.1})",
     "c.json: encoder_layerdrop: layers that are left out by chance are not modelled; set it to 0"},
    {R"({"model_type": "whisper", "apply_spec_augment": true})",
     "c.json: apply_spec_augment: masks over the spectrum are not modelled; set it to false"},
};
INSTANTIATE_TEST_SUITE_P(ImagesAndSound, ConfigError, ::testing::ValuesIn(kImagesAndSound));

constexpr Wrong kVisionLanguage[] = {
    {R"({"model_type": "qwen2_vl"})",
     "c.json: rope_scaling: mrope_section is missing; expected three numbers of pairs, for time, height and width, "
     "that add up to half a head, 64"},
    {R"({"model_type": "qwen2_vl", "rope_scaling": {"type": "mrope", "mrope_section": [16, 24]}})",
     "c.json: rope_scaling: mrope_section is no list of three; expected three numbers of pairs, for time, height and "
     "width, that add up to half a head, 64"},
    {R"({"model_type": "qwen2_5_vl", "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 23]}})",
     "c.json: rope_scaling: mrope_section adds up to 63; expected three numbers of pairs, for time, height and width, "
     "that add up to half a head, 64"},
    {R"({"model_type": "qwen2_5_vl", "vision_config": {"window_size": 20}})",
     "c.json: vision_config: window_size: 20 pixels hold no token"},
    {R"({"model_type": "qwen2_5_vl", "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}})",
     "c.json: vision_config: out_hidden_size: 3584, but the text model's tokens have 8192; make them equal"},
    {R"({"model_type": "qwen2_5_vl", "vision_config": {"num_heads": 512}})",
     "c.json: vision_config: num_heads: makes heads of 7; the rotary embedding turns pairs of rows and of columns, set "
     "a "
     "number that makes heads a multiple of 4"},
    {R"({"model_type": "qwen2_5_vl", "vision_config": {"fullatt_block_indexes": "all"}})",
     "c.json: vision_config: fullatt_block_indexes: \"all\" is no list of numbers of blocks"},
    {R"({"model_type": "qwen3_vl", "vision_config": {"deepstack_visual_indexes": [5, 5]}})",
     "c.json: vision_config: deepstack_visual_indexes: 5 names no block, or one again, of 27; give each block once"},
    {R"({"model_type": "llava", "vision_feature_layer": [-2, -5]})",
     "c.json: vision_feature_layer: [...] is no number of one of 25 outputs; several are not in this version"},
    {R"({"model_type": "llava", "text_config": {"model_type": "gpt2"}})",
     "c.json: text_config: model_type: a text model of type 'gpt2' behind this tower is not in this version; known are "
     "llama, mistral and qwen2"},
    {R"({"model_type": "llava", "vision_config": {"model_type": "siglip_vision_model"}})",
     "c.json: vision_config: model_type: a tower of type 'siglip_vision_model' is not in this version; known is "
     "clip_vision_model"},
};
INSTANTIATE_TEST_SUITE_P(VisionLanguage, ConfigError, ::testing::ValuesIn(kVisionLanguage));

constexpr Wrong kNames[] = {
    {R"({"model_type": "llama", "hidden_act": "sillu"})",
     "c.json: hidden_act: activation 'sillu' is not modelled; did you mean silu?"},
    {R"({"model_type": "gpt2", "activation_function": "quadratic"})",
     "c.json: activation_function: activation 'quadratic' is not modelled; known are silu, swish, gelu, "
     "gelu_pytorch_tanh, "
     "gelu_new, quick_gelu, relu, tanh, sigmoid, linear"},
    {R"({"model_type": "llama", "hidden_act": null})",
     "c.json: hidden_act: is null; give a value, or leave the field out for silu"},
    {R"({"model_type": "llama", "hidden_act": {"name": "silu"}})", "c.json: hidden_act: expected a text"},
    {R"({"model_type": "llama", "rope_scaling": "linear"})",
     "c.json: rope_scaling: \"linear\" is no object; expected one such as {\"rope_type\": \"linear\", \"factor\": "
     "2.0}"},
    {R"({"model_type": "llama", "rope_scaling": {"type": "longrop"}})",
     "c.json: rope_scaling: type 'longrop' is not modelled; did you mean longrope?"},
    {R"({"model_type": "llama", "rope_parameters": {"rope_type": null, "type": "linear"}})",
     "c.json: rope_parameters: rope_type 'null' is not modelled; known are default, linear, dynamic, yarn, longrope, "
     "llama3, proportional"},
    {R"({"model_type": "llama", "rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 0}})",
     "c.json: rope_scaling: original_max_position_embeddings: 0 is out of range; expected a whole number from 1 to "
     "1073741824"},
    {R"({"model_type": "gpt2", "add_cross_attention": true})",
     "c.json: add_cross_attention: cross attention in GPT-2 is not modelled; set it to false"},
};
INSTANTIATE_TEST_SUITE_P(Names, ConfigError, ::testing::ValuesIn(kNames));

TEST(ConfigErrors, DeepNestingIsRefused) {
  const std::string deep =
      R"({"model_type": "llama", "x": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_EQ(error_of(deep), "c.json: nested deeper than 64 levels; this is not a model's configuration");
}

TEST(ConfigErrors, TheFirstWrongFieldIsNamed) {
  EXPECT_EQ(error_of(R"({"model_type": "llama", "intermediate_size": 0, "vocab_size": 0})"),
            "c.json: vocab_size: 0 is out of range; expected a whole number from 1 to 67108864");
}

}  // namespace
}  // namespace ullage::model
