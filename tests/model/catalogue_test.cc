#include "model/catalogue.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "base/lines.h"

namespace ullage::model {
namespace {

std::string name(std::string_view wanted, const ModelCatalogue& catalogue = built_in_models()) {
  const auto found = find_model(wanted, "MODEL", catalogue);
  return found ? found->name : to_string(found.error());
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

std::string file_text(const std::string& path) {
  std::ifstream in(std::string(ULLAGE_SOURCE_DIR) + "/" + path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

constexpr ModelCatalogue kSmall{
    "{\"name\":\"alpha/One\",\"model_type\":\"llama\",\"provenance\":\"here\",\"config\":{\"a\":1}}\n"
    "{\"name\":\"beta/Two\",\"provenance\":\"there\",\"note\":\"n\",\"partial\":true,\"config\":{}}\n"
    "{\"name\":\"gamma/one\",\"model_type\":\"gpt2\",\"provenance\":\"p\",\"config\":{}}\n"
    "{\"name\":\"Zeta\",\"model_type\":\"torchvision\",\"provenance\":\"p\",\"config\":{}}\n"};

TEST(ModelData, IsCompiledInByteForByte) { EXPECT_EQ(built_in_models().models, file_text("data/models.jsonl")); }

TEST(ModelData, EveryLineParsesAndIsFoundByItsName) {
  std::set<std::string> seen;
  std::string last;
  for_each_line(built_in_models().models, [&](std::string_view line) {
    const auto json = parse_json(line, "line");
    ASSERT_TRUE(json) << line.substr(0, 80);
    const std::string own = (*json)["name"].get<std::string>();
    EXPECT_TRUE(seen.insert(upper(own)).second) << own;
    EXPECT_LT(compare_ignoring_case(last, own), 0) << own;
    last = own;
    const auto entry = find_model(upper(own));
    ASSERT_TRUE(entry) << own;
    EXPECT_EQ(entry->name, own);
    EXPECT_FALSE(entry->provenance.empty()) << own;
    EXPECT_EQ(entry->config, (*json)["config"]) << own;
    EXPECT_EQ(entry->config.value("model_type", ""), entry->model_type) << own;
  });
  EXPECT_GE(seen.size(), 441u);
}

TEST(ModelData, ListingAgreesWithParsing) {
  for (const ModelRow& row : list_models()) {
    const auto entry = find_model(row.name);
    ASSERT_TRUE(entry) << row.name;
    EXPECT_EQ(entry->model_type, row.model_type) << row.name;
    EXPECT_EQ(entry->partial, row.partial) << row.name;
  }
}

TEST(ModelData, KeepsWhatAConfigurationSays) {
  const auto llama = find_model("meta-llama/Llama-3.1-8B");
  ASSERT_TRUE(llama);
  EXPECT_EQ(llama->model_type, "llama");
  EXPECT_EQ(llama->config["intermediate_size"], 14336);
  EXPECT_EQ(llama->config["rope_scaling"]["rope_type"], "llama3");
  EXPECT_EQ(llama->note, "the same model under the Hub's present name");
  const auto resnet = find_model("resnet50");
  ASSERT_TRUE(resnet);
  EXPECT_EQ(resnet->config["model_type"], "torchvision");
  EXPECT_EQ(resnet->config["arch"], "resnet50");
}

TEST(ModelData, WhatWasRecalledIsStillSaid) {
  const auto entry = find_model("EleutherAI/gpt-neox-20b");
  ASSERT_TRUE(entry);
  EXPECT_NE(entry->note.find("recalled"), std::string::npos);
}

TEST(FindModel, IgnoresCaseAndNeedsNoOrganisationWhereOneModelHasTheName) {
  EXPECT_EQ(name("META-LLAMA/llama-3.1-8b"), "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(name("TinyLlama-1.1B-Chat-v1.0"), "TinyLlama/TinyLlama-1.1B-Chat-v1.0");
  EXPECT_EQ(name("two", kSmall), "beta/Two");
  EXPECT_EQ(name("zeta", kSmall), "Zeta");
}

TEST(FindModel, AnAmbiguousShortNameListsThem) {
  EXPECT_EQ(name("ONE", kSmall), "MODEL: 'ONE' could be alpha/One, gamma/one; write the whole name");
  EXPECT_EQ(find_model("one", "MODEL", kSmall).error().code, ErrorCode::invalid_argument);
}

TEST(FindModel, UnknownNamesTheNearest) {
  EXPECT_EQ(name("alpha/Ona", kSmall),
            "MODEL: no model named 'alpha/Ona' in the catalogue; did you mean alpha/One? `ullage models` lists all");
  EXPECT_EQ(name("qqqqqqqqqqqqqqqqqqqq", kSmall),
            "MODEL: no model named 'qqqqqqqqqqqqqqqqqqqq' in the catalogue; `ullage models` lists all");
  EXPECT_NE(name("meta-llama/Llama-3.1-9B").find("meta-llama/Llama-3.1-8B"), std::string::npos);
  EXPECT_EQ(find_model("nothing", "MODEL", kSmall).error().code, ErrorCode::not_found);
}

TEST(FindModel, SurvivesStrangeNames) {
  for (const std::string& wanted : {std::string(), std::string("/"), std::string("\""), std::string("\n"),
                                    std::string(1 << 20, 'x'), std::string(3, '\0'), std::string("{\"name\":\"")}) {
    const auto found = find_model(wanted);
    ASSERT_FALSE(found);
    EXPECT_LT(to_string(found.error()).size(), 600u);
  }
}

TEST(FindModel, ABrokenLineIsAnErrorAndNoCrash) {
  for (std::string_view text : {"{\"name\":\"a\"}", "{\"name\":\"a\",\"config\":3}", "{\"name\":\"a\",", "\n\n", ""}) {
    EXPECT_FALSE(find_model("a", "MODEL", {text})) << text;
  }
}

TEST(ListModels, FiltersByTextAndType) {
  EXPECT_EQ(list_models({}, kSmall).size(), 4u);
  const auto rows = list_models({"one", "LLAMA"}, kSmall);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "alpha/One");
  EXPECT_TRUE(list_models({"two", ""}, kSmall).at(0).partial);
  EXPECT_EQ(list_models({"two", ""}, kSmall).at(0).model_type, "");
  EXPECT_GE(list_models({"", "llama"}).size(), 59u);
}

}  // namespace
}  // namespace ullage::model
