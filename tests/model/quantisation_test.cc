// Weights as checkpoints store them, held to the totals that published ones state.
#include "model/quantisation.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/catalogue.h"
#include "model/name_pattern.h"
#include "model/outline.h"

namespace ullage::model {
namespace {

struct Stored {
  std::int64_t bytes = 0;
  std::int64_t elements = 0;  // as the Hub counts them: of the tensors that are stored
};

Stored total(const std::vector<StoredWeight>& weights) {
  Stored out;
  for (const StoredWeight& weight : weights) {
    for (const WeightPart& part : weight.parts) {
      out.bytes += part.bytes * weight.copies;
      const std::int64_t held = part.suffix == "_blocks" ? 2 : 1;  // weights that the Hub counts of one
      out.elements += held * part.elements * weight.copies;
    }
  }
  return out;
}

Json quantisation_of(const Json& config) {
  if (config.contains("quantization_config")) return config["quantization_config"];
  return config.contains("text_config") ? quantisation_of(config["text_config"]) : Json(nullptr);
}

Stored stored(std::string_view model, std::string_view word, DType dtype) {
  const CatalogueEntry entry = find_model(model).value();
  const Architecture arch = build_outline(entry.config, model).value();
  if (!word.empty()) return total(stored_weights(arch, quantisation_named(word).value(), dtype));
  const Json config = quantisation_of(entry.config);
  const auto read = read_quantisation(JsonObject(config, std::string(model)));
  EXPECT_TRUE(read) << to_string(read.error());
  return total(stored_weights(arch, *read, dtype));
}

TEST(StoredWeights, HaveTheBytesOfPublishedCheckpoints) {
  struct Row {
    std::string_view model;
    std::int64_t bytes;
    DType dtype;
  };
  constexpr Row kRows[] = {
      {"Qwen/Qwen-7B-Chat-Int4", 5860564992, DType::f16},
      {"mlx-community/Qwen3-14B-4bit", 8307783680, DType::bf16},
      {"allenai/Molmo-7B-D-0924-nf4", 6661964712, DType::f16},
      {"black-forest-labs/FLUX.1-schnell/text_encoder_2", 6328582592, DType::f16},
  };
  for (const Row& row : kRows) {
    const Stored have = stored(row.model, "", row.dtype);
    EXPECT_EQ(have.bytes, row.bytes) << row.model << " differs by " << have.bytes - row.bytes;
  }
}

// Elements as the Hub counts them, of which packed ones hold several weights.
TEST(StoredWeights, HaveTheElementsOfPublishedCheckpoints) {
  struct Row {
    std::string_view model;
    std::int64_t elements;
  };
  constexpr Row kRows[] = {
      {"MiniMaxAI/MiniMax-M2.5", 228703644928},
      // Less the layer that predicts a token more: 13,463,426,304 weights and 702,264 scales.
      {"deepseek-ai/DeepSeek-V3", 684531386000 - 13463426304 - 702264},
      {"openai/gpt-oss-20b", 21511953984},
      {"openai/gpt-oss-120b", 120412337472},
  };
  for (const Row& row : kRows) {
    const Stored have = stored(row.model, "", DType::bf16);
    EXPECT_EQ(have.elements, row.elements) << row.model << " differs by " << have.elements - row.elements;
  }
}

TEST(StoredWeights, PlainOnesAreParametersTimesTheirSize) {
  const CatalogueEntry entry = find_model("Qwen/Qwen2-0.5B-Instruct").value();
  const Architecture arch = build_outline(entry.config, "").value();
  EXPECT_EQ(stored("Qwen/Qwen2-0.5B-Instruct", "bf16", DType::bf16).bytes, 2 * parameter_count(arch));
}

TEST(NamePatterns, AreThoseOfTheFormats) {
  const auto names = [](const char* pattern, const char* module) { return NamePatterns{{pattern}}.names(module); };
  EXPECT_TRUE(names("lm_head", "lm_head"));
  EXPECT_TRUE(names("gate", "model.layers.3.mlp.gate"));
  EXPECT_FALSE(names("gate", "model.layers.3.mlp.gate_proj"));
  EXPECT_TRUE(names("visual", "model.visual.blocks.0.attn.qkv"));
  EXPECT_TRUE(names("model.layers.0*", "model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(names("model.layers.1.*", "model.layers.11.mlp.up_proj"));
  EXPECT_TRUE(names("model.layers.*.self_attn", "model.layers.7.self_attn.q_proj"));
  EXPECT_TRUE(names("re:.*self_attn.*", "model.layers.7.self_attn.q_proj"));
  EXPECT_TRUE(names("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "model.layers.0.mlp.gate_up_proj"));
  EXPECT_FALSE(names("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "model.layers.0.mlp.experts.1.gate_proj"));
  EXPECT_TRUE(matches_regex("a[0-9]+b?$", "a12"));
  EXPECT_FALSE(matches_regex("(a*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"));
  EXPECT_FALSE(matches_regex("(", "a"));
  EXPECT_FALSE(matches_regex("[a", "a"));
  EXPECT_FALSE(matches_regex("\\", "a"));
}

TEST(Quantisation, WhatIsNotModelledIsNamed) {
  const auto refused = quantisation_named("int3");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("nf4-dq"), std::string::npos);
  const Json config = {{"quant_method", "hqq"}};
  const auto method = read_quantisation(JsonObject(config, "c.json"));
  ASSERT_FALSE(method);
  EXPECT_EQ(to_string(method.error()), "c.json: quant_method: 'hqq' is not modelled; name a way with --quantization");
}

}  // namespace
}  // namespace ullage::model
