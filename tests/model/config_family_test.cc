// From a configuration to an Architecture: nested text models, fields that are set, limits.
#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "model/family.h"
#include "model/limits.h"

namespace ullage::model {
namespace {

Json json(std::string_view text) { return parse_json(text, "c").value(); }

Architecture build(std::string_view text) {
  auto built = build_architecture(json(text), "c");
  EXPECT_TRUE(built) << to_string(built.error());
  return built.value();
}

TEST(NestedText, AWrapperGivesItsTextModelAndSaysSo) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    Json config = json(R"({"model_type": "some_vlm"})");
    config[key] = json(R"({"model_type": "mistral", "num_hidden_layers": 2})");
    const Architecture got = build(config.dump());
    EXPECT_EQ(got.family, "mistral");
    EXPECT_EQ(got.layer_count(), 2);
    ASSERT_EQ(got.notes.size(), 1u);
    EXPECT_EQ(got.notes[0].kind, NoteKind::text_part_only);
    EXPECT_EQ(got.notes[0].subject, "some_vlm");
  }
}

TEST(NestedText, AKnownOuterTypeIsReadItself) {
  const Architecture got =
      build(R"({"model_type": "llama", "num_hidden_layers": 3, "text_config": {"model_type": "gpt2"}})");
  EXPECT_EQ(got.family, "llama");
  EXPECT_EQ(got.layer_count(), 3);
  EXPECT_TRUE(got.notes.empty());
}

std::string set(std::string_view config, std::string_view assignment) {
  Json changed = json(config);
  const auto done = set_field(changed, assignment);
  return done ? changed.dump() : to_string(done.error());
}

TEST(SetField, TakesJsonAndOtherwiseText) {
  EXPECT_EQ(set("{}", "a=4"), R"({"a":4})");
  EXPECT_EQ(set(R"({"a":1,"b":2})", "a=null"), R"({"a":null,"b":2})");
  EXPECT_EQ(set("{}", "a=true"), R"({"a":true})");
  EXPECT_EQ(set("{}", "a=silu"), R"({"a":"silu"})");
  EXPECT_EQ(set("{}", "a=\"4\""), R"({"a":"4"})");
  EXPECT_EQ(set("{}", "a={\"type\":\"linear\"}"), R"({"a":{"type":"linear"}})");
  EXPECT_EQ(set("{}", "a=b=c"), R"({"a":"b=c"})");
  EXPECT_EQ(set("{}", "a="), R"({"a":""})");
  EXPECT_EQ(set("{}", "a=1e999"), R"({"a":"1e999"})");
  EXPECT_EQ(set("{}", "a=NaN"), R"({"a":"NaN"})");
}

TEST(SetField, DotsReachInsideAndMakeObjects) {
  EXPECT_EQ(set(R"({"a":{"b":1}})", "a.b=2"), R"({"a":{"b":2}})");
  EXPECT_EQ(set("{}", "a.b.c=2"), R"({"a":{"b":{"c":2}}})");
  EXPECT_EQ(set(R"({"a":null})", "a.b=2"), R"({"a":{"b":2}})");
}

TEST(SetField, RefusesNonsense) {
  EXPECT_EQ(set("{}", "n_layer"), "--set: 'n_layer' is not KEY=VALUE");
  EXPECT_EQ(set("{}", "=3"), "--set: '=3' is not KEY=VALUE");
  EXPECT_EQ(set("{}", ""), "--set: '' is not KEY=VALUE");
  EXPECT_EQ(set("{}", "a..b=3"), "--set: 'a..b=3' has an empty name in its key; write KEY.KEY=VALUE");
  EXPECT_EQ(set("{}", ".a=3"), "--set: '.a=3' has an empty name in its key; write KEY.KEY=VALUE");
  EXPECT_EQ(set("{}", "a.=3"), "--set: 'a.=3' has an empty name in its key; write KEY.KEY=VALUE");
  EXPECT_EQ(set(R"({"a":4})", "a.b=3"), "--set: 'a.b=3' leads into something that is no object");
  EXPECT_EQ(set(R"({"a":[4]})", "a.0=3"), "--set: 'a.0=3' leads into something that is no object");
  EXPECT_EQ(set("[]", "a=3"), "--set: 'a=3' leads into something that is no object");
  EXPECT_EQ(set("null", "a=3"), "--set: 'a=3' leads into something that is no object");
  EXPECT_EQ(set("{}", "a=\xff"), "--set: 'a' is set to what is no UTF-8 text");
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  const std::string shown = deep.substr(0, 60);
  EXPECT_EQ(set("{}", deep + "=3"),
            std::string("--set: '").append(shown).append("...' reaches deeper than any configuration"));
}

TEST(SetField, NestingInAValueIsLimited) {
  const std::string got = set("{}", "a=" + std::string(100'000, '['));
  EXPECT_EQ(got.substr(0, 10), "{\"a\":\"[[[[") << "taken as a text";
}

TEST(ReadsField, SaysWhetherAnythingDependsOnIt) {
  const Json llama = json(R"({"model_type": "llama", "rope_scaling": {"rope_type": "llama3"}})");
  for (const std::string_view read :
       {"model_type", "hidden_size", "head_dim", "tie_word_embeddings", "hidden_act", "rope_scaling.rope_type",
        "mlp_bias", "attention_dropout", "num_key_value_heads"}) {
    EXPECT_TRUE(reads_field(llama, read)) << read;
  }
  for (const std::string_view unread : {"rope_theta", "rms_norm_eps", "hiden_size", "n_layer",
                                        "text_config.hidden_size", "rope_scaling.factor", "sliding_window", ""}) {
    EXPECT_FALSE(reads_field(llama, unread)) << unread;
  }
  const Json wrapper = json(R"({"model_type": "some_vlm", "text_config": {"model_type": "llama"}})");
  EXPECT_TRUE(reads_field(wrapper, "text_config.num_hidden_layers"));
  EXPECT_FALSE(reads_field(wrapper, "num_hidden_layers"));
}

TEST(Limits, WhatPeopleAskAboutIsCounted) {
  const Architecture large = build(R"({"model_type": "llama", "hidden_size": 16384, "intermediate_size": 53248,
      "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "vocab_size": 128256})");
  EXPECT_TRUE(check_size(large, 1, 1 << 20));
  EXPECT_TRUE(check_size(large, 4096, 8192));
}

TEST(Limits, WhatOverflowsIsRefused) {
  const Architecture small = build(R"({"model_type": "llama"})");
  EXPECT_EQ(to_string(check_size(small, 1, 1 << 26).error()),
            "--seq-len: 1 sequences of 67108864 tokens through 32 layers take more than can be counted; use a smaller "
            "micro-batch "
            "or shorter sequences");
  EXPECT_FALSE(check_size(small, std::int64_t{1} << 62, 1));
  EXPECT_FALSE(check_size(small, INT64_MAX, INT64_MAX));
}

}  // namespace
}  // namespace ullage::model
