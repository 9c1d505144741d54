// Every model of the families that are known builds, has as many parameters as were counted elsewhere, and real ones
// have the tensors that the published class registers (tests/truth/record_parameters.py).
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "base/lines.h"
#include "model/catalogue.h"
#include "model/family.h"

namespace ullage::model {
namespace {

constexpr std::string_view kText[] = {"cohere",  "cohere2", "exaone4",  "gemma",   "gemma2",   "gemma3_text", "gpt2",
                                      "granite", "llama",   "mistral",  "olmo",    "olmo2",    "olmo3",       "phi3",
                                      "qwen2",   "qwen3",   "seed_oss", "smollm3", "stablelm", "starcoder2"};

std::string data(const std::string& name) {
  std::ifstream in(std::string(ULLAGE_TEST_DATA) + "/" + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

Expected<Architecture> from_catalogue(std::string_view name) {
  return find_model(name).and_then(
      [](const CatalogueEntry& entry) { return build_architecture(entry.config, entry.name); });
}

TEST(ConfigCatalogue, EveryTextModelOfAKnownFamilyBuilds) {
  for (const std::string_view type : kText) {
    for (const ModelRow& row : list_models({"", std::string(type)})) {
      const auto built = from_catalogue(row.name);
      ASSERT_TRUE(built) << to_string(built.error());
      EXPECT_EQ(built->family, type) << row.name;
      EXPECT_TRUE(built->notes.empty()) << row.name;
    }
  }
}

// The wrappers in the catalogue whose text model is known.
TEST(ConfigCatalogue, WrappersGiveTheirTextModel) {
  for (const std::string_view type : {"gemma3", "mistral3"}) {
    for (const ModelRow& row : list_models({"", std::string(type)})) {
      const auto built = from_catalogue(row.name);
      ASSERT_TRUE(built) << to_string(built.error());
      EXPECT_EQ(built->notes.size(), 1u) << row.name;
    }
  }
}

TEST(ConfigCatalogue, BareInfinityElsewhereIsNoHindrance) {
  for (const ModelRow& row : list_models({"Nemotron", "nemotron_h"})) {
    const auto built = from_catalogue(row.name);
    ASSERT_FALSE(built);
    EXPECT_EQ(built.error().code, ErrorCode::unsupported) << row.name;
  }
}

// Models that this catalogue holds. `stored`: counted from the headers of the weights; `computed`: by formula from a
// configuration. They differ where a row says so; the catalogue's configuration may have been corrected since.
TEST(ConfigCatalogue, ParameterCountsAreThoseCountedElsewhere) {
  int exact = 0;
  for_each_line(data("param-counts.jsonl"), [&](std::string_view line) {
    const Json row = parse_json(line, "param-counts.jsonl").value();
    const auto built = from_catalogue(row["model"].get<std::string>());
    ASSERT_TRUE(built) << to_string(built.error());
    const std::int64_t count = parameter_count(*built);
    const std::int64_t stored = row.value("stored_parameters", std::int64_t{0});
    const std::int64_t computed = row.value("computed_parameters", std::int64_t{0});
    if (row["agreement"] == "exact" || computed == 0) {
      ++exact;
      EXPECT_EQ(count, stored) << line;
    } else {
      EXPECT_TRUE(count == computed || count == stored) << line << ": " << count;
    }
    EXPECT_EQ(active_parameter_count(*built), row.value("computed_active_parameters", count)) << line;
  });
  EXPECT_GT(exact, 10);
}

std::string tensors_of(const Architecture& architecture) {
  std::string out;
  for_each_parameter(architecture, [&](const Parameter& parameter, const std::string& name, int) {
    if (parameter.tied_to) return;
    out += name;
    for (const Dimension& dim : parameter.dims) out.append(" ").append(std::to_string(dim.size()));
    out += "\n";
  });
  return out;
}

class Tensors : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Tensors, HaveTheNamesShapesAndOrderOfThePublishedClass) {
  std::string file(GetParam());
  file.replace(file.find('/'), 1, "__");
  const auto built = from_catalogue(GetParam());
  ASSERT_TRUE(built) << to_string(built.error());
  EXPECT_EQ(tensors_of(*built), data("config/" + file + ".tensors"));
}

INSTANTIATE_TEST_SUITE_P(
    Recorded, Tensors,
    ::testing::Values("google/vit-base-patch16-224-in21k", "openai/clip-vit-large-patch14", "openai/whisper-tiny",
                      "meta-llama/Llama-3.1-8B", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", "mistralai/Mistral-7B-v0.1",
                      "openai-community/gpt2", "EleutherAI/pythia-410m", "facebook/opt-350m", "bigscience/bloom-560m",
                      "tiiuae/falcon-7b", "tiiuae/falcon-40b-transformers", "EleutherAI/gpt-j-6b", "mosaicml/mpt-7b",
                      "bigcode/gpt_bigcode-santacoder", "microsoft/phi-2", "EleutherAI/gpt-neo-1.3B",
                      "Qwen/Qwen2-0.5B-Instruct", "Qwen/Qwen3-0.6B", "microsoft/Phi-4-mini-instruct", "google/gemma-2b",
                      "google/gemma-2-2b-it", "google/gemma-3-1b-it", "HuggingFaceTB/SmolLM3-3B", "allenai/OLMo-1B-hf",
                      "allenai/OLMo-2-1124-7B", "ibm-granite/granite-3.1-2b-instruct", "stabilityai/stablelm-2-1_6b",
                      "CohereForAI/c4ai-command-r-plus", "CohereForAI/c4ai-command-r7b-12-2024",
                      "bigcode/starcoder2-7b", "Qwen/Qwen2-VL-2B-Instruct", "Qwen/Qwen2.5-VL-3B-Instruct",
                      "Qwen/Qwen3-VL-2B-Instruct", "llava-hf/llava-1.5-7b-hf", "ByteDance-Seed/Seed-OSS-36B-Instruct",
                      "LGAI-EXAONE/EXAONE-4.0-32B"));

}  // namespace
}  // namespace ullage::model
