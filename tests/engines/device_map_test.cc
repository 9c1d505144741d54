// Modules are put where transformers and accelerate put them (tests/truth/record_device_maps.py).
#include "engines/transformers/device_map.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engines/transformers/serve.h"
#include "engines/transformers/split.h"
#include "memory/attribution.h"
#include "model/catalogue.h"
#include "model/family.h"

namespace ullage::engines::transformers {
namespace {

model::Architecture model_named(const std::string& name) {
  const auto entry = model::find_model(name);
  EXPECT_TRUE(entry) << name;
  auto architecture = model::build_architecture(entry->config, name);
  EXPECT_TRUE(architecture) << name;
  return *std::move(architecture);
}

model::BaseFormat format_named(const std::string& name) {
  if (name == "nf4") return model::BaseFormat::nf4;
  return name == "int8" ? model::BaseFormat::int8 : model::BaseFormat::plain;
}

DeviceMap map_named(const std::string& name) {
  if (name == "sequential") return DeviceMap::sequential;
  return name == "balanced_low_0" ? DeviceMap::balanced_low_0 : DeviceMap::balanced;
}

// The record's "model.layers.0-13": the card of "model.layers.7".
int recorded_card(const Json& modules, const std::string& name) {
  const std::size_t dot = name.rfind('.');
  for (const auto& [key, card] : modules.items()) {
    const std::string prefix = key.substr(0, key.rfind('.'));
    const std::string numbers = key.substr(key.rfind('.') + 1);
    const std::size_t dash = numbers.find('-');
    if (dash != std::string::npos && dot != std::string::npos && name.compare(0, dot, prefix) == 0 &&
        dot == prefix.size()) {
      const int number = std::stoi(name.substr(dot + 1));
      if (std::stoi(numbers) <= number && number <= std::stoi(numbers.substr(dash + 1))) return card.get<int>();
    }
    if (key.empty() || name == key || name.compare(0, key.size() + 1, key + ".") == 0) return card.get<int>();
  }
  ADD_FAILURE() << "not recorded: " << name;
  return -2;
}

TEST(DeviceMap, PutsModulesWhereTheLibrariesPutThem) {
  std::ifstream file(ULLAGE_TEST_DATA "/device-maps.jsonl");
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const auto row = parse_json(line, "row");
    ASSERT_TRUE(row);
    const model::Architecture architecture = model_named((*row)["model"].get<std::string>());
    ServeOptions options;
    options.weights = format_named((*row)["quantization"].get<std::string>());
    const auto plan = plan_weights(architecture, options);
    ASSERT_TRUE(plan);
    const auto free = (*row)["free_bytes"].get<std::vector<std::int64_t>>();
    const Placement placed =
        place(architecture, *plan, options, map_named((*row)["device_map"].get<std::string>()), free);
    const std::string what = line.substr(0, line.find("\"modules\""));
    for (std::size_t i = 0; i < placed.layers.size(); ++i) {
      const std::string name = architecture.layer_prefix + std::to_string(i);
      ASSERT_EQ(placed.layers[i], recorded_card((*row)["modules"], name)) << what << name;
    }
    for (std::size_t i = 0; i < placed.parameters.size(); ++i) {
      const std::string& name = architecture.parameters[i].name;
      ASSERT_EQ(placed.parameters[i], recorded_card((*row)["modules"], name)) << what << name;
    }
  }
  EXPECT_EQ(rows, 296);
}

std::string word_behind(const std::string& args, const std::string& option, std::string fallback) {
  const std::size_t at = args.find(option + " ");
  if (at == std::string::npos) return fallback;
  const std::size_t from = at + option.size() + 1;
  return args.substr(from, args.find(' ', from) - from);
}

ServeOptions options_of(const std::string& args) {
  ServeOptions out;
  out.kernels = pytorch::Kernels::cuda_traced;
  out.batch = std::stoll(word_behind(args, "--batch", "1"));
  out.seq_len = std::stoll(word_behind(args, "--seq-len", "1"));
  out.new_tokens = std::stoll(word_behind(args, "--new-tokens", "1"));
  out.dtype = parse_dtype(word_behind(args, "--dtype", "bf16")).value();
  if (word_behind(args, "--attention", "") == "eager") out.attention = pytorch::AttentionImpl::eager;
  if (word_behind(args, "--cache", "") == "static") out.cache = CacheKind::fixed;
  return out;
}

// The embedding and a head that is tied to it on the first card, what stands behind the layers on the last.
Placement shared_out(const model::Architecture& architecture, const std::vector<std::int32_t>& layers) {
  Placement out;
  out.layers = layers;
  const std::int32_t last = layers.back();
  for (std::size_t i = 0; i < architecture.parameters.size(); ++i) {
    const bool in_front = i < architecture.layers_at || architecture.parameters[i].tied_to;
    out.parameters.push_back(in_front ? 0 : last);
  }
  for (const model::Buffer& buffer : architecture.buffers)
    out.buffers.push_back(buffer.name.find("embed_tokens") != std::string::npos ? 0 : last);
  out.modules.emplace_back("embedding", 0);
  return out;
}

// Every card's bytes at each moment, and its peak, as accelerate's hooks leave them (tests/truth/record_cards.py).
TEST(SplitOverCards, EachCardHoldsWhatItHoldsUnderTheHooks) {
  std::ifstream file(ULLAGE_TEST_DATA "/cards.jsonl");
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const auto row = parse_json(line, "row");
    ASSERT_TRUE(row);
    const auto architecture = model::build_architecture((*row)["model"], "model");
    ASSERT_TRUE(architecture);
    const ServeOptions options = options_of((*row)["args"].get<std::string>());
    const auto layers = (*row)["layers"].get<std::vector<std::int32_t>>();
    const Placement placed = shared_out(*architecture, layers);
    const auto whole = run_generation(*architecture, options);
    ASSERT_TRUE(whole) << to_string(whole.error());
    std::vector<ServeRun> split =
        split_over_cards(*whole, *architecture, options, placed, static_cast<std::size_t>(layers.back()) + 1);
    for (std::size_t card = 0; card < split.size(); ++card) {
      memory::Timeline& timeline = split[card].run.timeline;
      const std::string what = line.substr(line.find("\"layers\"")) + " card " + std::to_string(card);
      timeline.granularity_bytes = 1;
      const auto held = [&](std::uint32_t event) { return memory::moment_at(timeline, event).bytes; };
      EXPECT_EQ(held(split[card].run.before_step), (*row)["before_prefill"][card]) << what;
      EXPECT_EQ(held(split[card].after_prefill), (*row)["after_prefill"][card]) << what;
      EXPECT_EQ(held(split[card].after_decode), (*row)["after_decode"][card]) << what;
      timeline.granularity_bytes = 512;
      const auto end = static_cast<std::uint32_t>(timeline.events.size());
      EXPECT_EQ(memory::find_peak(timeline, split[card].run.before_step, end).bytes, (*row)["peak_blocks"][card])
          << what;
    }
  }
  EXPECT_EQ(rows, 6);
}

// What the cards hold together is what one would, but for copies of what goes from one to the next.
TEST(SplitOverCards, HoldsEveryWeightAndEveryKeyOnce) {
  const model::Architecture architecture = model_named("TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  for (const CacheKind cache : {CacheKind::dynamic, CacheKind::fixed}) {
    ServeOptions options;
    options.cache = cache;
    options.batch = 2;
    options.seq_len = 100;
    options.new_tokens = 5;
    const auto whole = run_generation(architecture, options);
    ASSERT_TRUE(whole);
    const auto plan = plan_weights(architecture, options);
    ASSERT_TRUE(plan);
    const std::vector<std::int64_t> free(3, std::int64_t{1} << 40);
    const Placement placed = place(architecture, *plan, options, DeviceMap::balanced, free);
    EXPECT_EQ(placed.layers.front(), 0);
    EXPECT_EQ(placed.layers.back(), 2);
    const std::vector<ServeRun> split = split_over_cards(*whole, architecture, options, placed, free.size());
    ASSERT_EQ(split.size(), 3U);
    memory::ByComponent sum{};
    for (const ServeRun& one : split) {
      const memory::Moment decoded = memory::moment_at(one.run.timeline, one.after_decode);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += decoded.by_component[i];
      // Whatever was sent to a module is gone.
      const auto end = static_cast<std::uint32_t>(one.run.timeline.events.size());
      EXPECT_GE(memory::moment_at(one.run.timeline, end).bytes, 0);
    }
    const memory::Moment decoded = memory::moment_at(whole->run.timeline, whole->after_decode);
    for (const memory::Component component :
         {memory::Component::parameters, memory::Component::kv_cache, memory::Component::buffers}) {
      const auto i = static_cast<std::size_t>(component);
      EXPECT_EQ(sum[i], decoded.by_component[i]) << memory::name_of(component);
    }
  }
}

}  // namespace
}  // namespace ullage::engines::transformers
