#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "corpus/resolve.h"
#include "corpus/score.h"

namespace ullage::corpus {
namespace {

class CorpusFile {
 public:
  explicit CorpusFile(const std::string& content) {
    path_ = ::testing::TempDir() + "corpus_" + std::to_string(::getpid()) + ".jsonl";
    std::ofstream(path_) << content;
  }
  ~CorpusFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr const char* kGood = R"({"id":"a","args":["train","gpt2"],"expect":{"peak.allocated_bytes":1}})";

TEST(Cases, AreReadWithTheirLines) {
  const CorpusFile file(
      std::string(kGood) + "\n\n" +
      R"({"id":"b","source":"s","engine":"e","method":"lab","confidence":"high","date":"2026-04",)"
      R"("args":["train","x/y","--lora=8"],"expect":{"k":2.5,"l":3},"precision":{"k":0.5},"notes":"n"})" +
      "\n");
  const auto cases = read_cases(file.path());
  ASSERT_TRUE(cases) << to_string(cases.error());
  ASSERT_EQ(cases->size(), 2U);
  const Case& b = (*cases)[1];
  EXPECT_EQ(b.where, file.path() + ": line 3");
  EXPECT_EQ(b.engine, "e");
  EXPECT_EQ(b.date, "2026-04");
  ASSERT_EQ(b.expect.size(), 2U);
  EXPECT_EQ(b.expect[0].key, "k");
  EXPECT_EQ(b.expect[0].value, 2.5);
  ASSERT_EQ(b.precision.size(), 1U);
}

struct Malformed {
  const char* line;
  const char* error;  // behind "FILE: line 2"
};

class MalformedCase : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedCase, IsOneErrorWithFileAndLine) {
  const CorpusFile file(std::string(kGood) + "\n" + GetParam().line + "\n");
  const auto cases = read_cases(file.path());
  ASSERT_FALSE(cases);
  EXPECT_EQ(cases.error().code, ErrorCode::malformed);
  EXPECT_EQ(to_string(cases.error()), file.path() + ": line 2" + GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    Table, MalformedCase,
    ::testing::Values(Malformed{"{", ": byte 2: not valid JSON here; check that the file is whole"},
                      Malformed{"[1]", ": expected a JSON object, one case a line"},
                      Malformed{R"({"args":["train"],"expect":{"k":1}})", ": id: missing"},
                      Malformed{R"({"id":"a","expect":{"k":1}})", ": args: missing; expected the arguments of a call"},
                      Malformed{R"({"id":"a","args":["train",7],"expect":{"k":1}})",
                                ": args: expected a list of texts"},
                      Malformed{R"({"id":"a","args":["train"]})", ": expect: missing; expected what was measured"},
                      Malformed{R"({"id":"a","args":["train"],"expect":[]})", ": expect: expected an object"},
                      Malformed{R"({"id":"a","args":["train"],"expect":{"k":"1"}})",
                                ": expect: k: expected a number, true or false"}));

TEST(Cases, AFileThatIsNotThereIsAnError) { EXPECT_EQ(read_cases("no/such.jsonl").error().code, ErrorCode::not_found); }

TEST(Resolve, FollowsNamesOfListsAndKeysWithDots) {
  const auto json = parse_json(R"({"peak":{"bytes":5},"components":[{"name":"parameters","bytes":7}],
    "buffers":[{"device":"CUDA0","kv":1},{"device":"Host","kv":2}],"a.b":{"c":3},"none":null,"text":"x","yes":true})",
                               "t");
  ASSERT_TRUE(json);
  EXPECT_EQ(number_at(*json, "peak.bytes"), 5.0);
  EXPECT_EQ(number_at(*json, "components.parameters.bytes"), 7.0);
  EXPECT_EQ(number_at(*json, "buffers.Host.kv"), 2.0);
  EXPECT_EQ(number_at(*json, "a.b.c"), 3.0);
  EXPECT_EQ(number_at(*json, "yes"), 1.0);
  EXPECT_EQ(number_at(*json, "none"), std::nullopt);
  EXPECT_EQ(number_at(*json, "peak"), std::nullopt);
  EXPECT_EQ(number_at(*json, "peak.bytes.more"), std::nullopt);
  EXPECT_EQ(number_at(*json, ""), std::nullopt);
  EXPECT_EQ(text_at(*json, "text"), "x");
  EXPECT_EQ(text_at(*json, "yes"), "true");
  EXPECT_EQ(text_at(*json, "peak.bytes"), "5");
  EXPECT_EQ(text_at(*json, "none"), std::nullopt);
}

TEST(Error, IsRelativeAndNothingWithinThePrecision) {
  EXPECT_EQ(error_of(100, 100, 0), 0);
  EXPECT_EQ(error_of(103, 100, 0), 0.03);
  EXPECT_EQ(error_of(97, 100, 0), 0.03);
  EXPECT_EQ(error_of(103, 100, 3), 0);
  EXPECT_EQ(error_of(0, 0, 0), 0);
  EXPECT_EQ(error_of(5, 0, 0), 1);
}

Case case_of(std::vector<std::string> args, std::vector<Quantity> expect = {{"value", 100}}) {
  Case entry;
  entry.id = args[1];
  entry.engine = "pytorch";
  entry.confidence = "high";
  entry.args = std::move(args);
  entry.expect = std::move(expect);
  return entry;
}

bool chosen(const Case& entry, const Json* prediction, std::vector<std::string> where) {
  Selection selection;
  for (const std::string& text : where) selection.where.push_back(parse_where(text).value());
  return selected(entry, prediction, selection);
}

TEST(Where, LooksAtTheSetupThenTheArgumentsThenTheNeutralValue) {
  const Case entry = case_of({"train", "org/some-model", "--precision", "fp32", "--recompute-reentrant", "--tp=2"});
  const Json prediction{{"model", {{"family", "llama"}}},
                        {"device", {{"count", 8}}},
                        {"setup", {{"precision", "bf16"}, {"clip_grad", 1.0}, {"recompute_reentrant", false}}}};
  EXPECT_TRUE(chosen(entry, &prediction, {"precision=fp16,bf16"}));
  EXPECT_FALSE(chosen(entry, nullptr, {"precision=bf16"}));
  EXPECT_TRUE(chosen(entry, nullptr, {"precision=fp32"}));
  EXPECT_TRUE(chosen(entry, &prediction, {"lora=0"}));
  EXPECT_FALSE(chosen(entry, &prediction, {"lora=8"}));
  EXPECT_TRUE(chosen(entry, &prediction, {"zero=none"}));
  EXPECT_TRUE(chosen(entry, &prediction, {"tp=2"}));
  EXPECT_TRUE(chosen(entry, &prediction, {"pp=1"}));
  EXPECT_FALSE(chosen(entry, &prediction, {"pp=0"}));
  EXPECT_TRUE(chosen(entry, &prediction, {"clip-grad=1"}));
  EXPECT_TRUE(chosen(entry, &prediction, {"recompute-reentrant=0"}));
  EXPECT_TRUE(chosen(entry, nullptr, {"recompute_reentrant=true"}));
  EXPECT_TRUE(chosen(entry, &prediction, {"gpus=8"}));
  EXPECT_TRUE(chosen(entry, &prediction, {"family=gpt2,llama"}));
  EXPECT_FALSE(chosen(entry, &prediction, {"family=gpt2"}));
  EXPECT_TRUE(chosen(entry, &prediction, {"model=SOME-MODEL", "engine=pytorch"}));
  EXPECT_FALSE(chosen(entry, &prediction, {"model=some-model", "engine=ddp"}));
}

TEST(Where, EngineIsTheLabelOrTheOneThatTheCaseAsksFor) {
  Case entry = case_of({"train", "org/some-model", "--engine", "pytorch", "--modules", "litgpt"});
  entry.engine = "litgpt";
  EXPECT_TRUE(chosen(entry, nullptr, {"engine=litgpt"}));
  EXPECT_TRUE(chosen(entry, nullptr, {"engine=pytorch"}));
  EXPECT_FALSE(chosen(entry, nullptr, {"engine=ddp"}));
}

TEST(Where, RejectsWhatIsNoCondition) {
  for (const char* text : {"", "key", "=value", "key="}) {
    EXPECT_EQ(parse_where(text).error().code, ErrorCode::invalid_argument) << text;
  }
  EXPECT_EQ(parse_where("k=a,b").value().values, (std::vector<std::string>{"a", "b"}));
}

TEST(Selection, ConfidenceIsOneOfThoseNamed) {
  Case entry = case_of({"train", "m"});
  Selection selection;
  selection.confidence = {"high", "medium"};
  EXPECT_TRUE(selected(entry, nullptr, selection));
  entry.confidence = "low";
  EXPECT_FALSE(selected(entry, nullptr, selection));
}

// Predicts the number that stands in place of the model's name.
Expected<Json> read_name(const std::vector<std::string>& args, const std::string& /*date*/) {
  if (args[1] == "later") return fail(ErrorCode::unsupported, "MODEL", "is not in this version");
  if (args[1] == "wrong") return fail(ErrorCode::not_found, "MODEL", "no such model");
  return Json{{"value", std::stod(args[1])}, {"null", nullptr}};
}

TEST(Validate, CountsMedianAndPercentileByEngineAndQuantity) {
  std::vector<Case> cases;
  for (int i = 0; i < 10; ++i) cases.push_back(case_of({"train", std::to_string(100 + i)}));
  cases.push_back(case_of({"train", "later"}));
  cases.push_back(case_of({"train", "wrong"}));
  cases.push_back(case_of({"train", "100"}, {{"null", 1}, {"value", 100}}));
  cases.back().engine = "other";
  const Validation v = validate(cases, {}, "", read_name);
  EXPECT_EQ(v.read, 13U);
  EXPECT_EQ(v.selected, 13U);
  EXPECT_EQ(v.scored, 11U);
  EXPECT_EQ(v.equal, 2U);
  ASSERT_EQ(v.skipped.size(), 1U);
  EXPECT_EQ(v.skipped[0].reason, "MODEL: is not in this version");
  ASSERT_EQ(v.failed.size(), 1U);
  ASSERT_EQ(v.missing.size(), 1U);
  EXPECT_EQ(v.missing[0].reason, "null");
  ASSERT_EQ(v.summaries.size(), 2U);
  EXPECT_EQ(v.summaries[0].count, 10U);
  EXPECT_EQ(v.summaries[0].equal, 1U);
  EXPECT_DOUBLE_EQ(v.summaries[0].median, 0.045);
  EXPECT_DOUBLE_EQ(v.summaries[0].percentile_90, 0.08);
  EXPECT_DOUBLE_EQ(v.summaries[0].largest, 0.09);
  EXPECT_EQ(v.summaries[1].engine, "other");
}

TEST(Validate, SumsUpByOptionsAndConfidence) {
  std::vector<Case> cases{case_of({"train", "100", "--modules", "litgpt"}), case_of({"train", "101"})};
  cases[0].confidence = "high";
  cases[1].confidence = "low";
  const Validation v = validate(cases, {}, "", read_name, {"modules", "confidence"});
  ASSERT_EQ(v.summaries.size(), 2U);
  EXPECT_EQ(v.summaries[0].engine, "litgpt high");
  EXPECT_EQ(v.summaries[1].engine, "- low");
}

// Measured 100: within three of the ranges, at the edge of one, and outside of one but within the case's precision.
TEST(Validate, CountsWhatLiesInThePrintedRange) {
  const Predict predict = [](const std::vector<std::string>& args, const std::string& /*date*/) -> Expected<Json> {
    const double high = std::stod(args[1]);
    return Json{{"peak", {{"a_bytes", 90}, {"a_range_bytes", {80, high}}, {"b_bytes", 100}}},
                {"kv", {{"bytes", 50}, {"range_bytes", {40, 60}}}}};
  };
  std::vector<Case> cases;
  for (const char* high : {"90", "100", "110", "120", "95"})
    cases.push_back(case_of({"train", high}, {{"peak.a_bytes", 100}}));
  cases.back().precision = {{"peak.a_bytes", 5}};
  cases.push_back(case_of({"train", "90"}, {{"peak.b_bytes", 100}}));
  cases.push_back(case_of({"serve", "90"}, {{"kv.bytes", 45}}));
  const Validation v = validate(cases, {}, "", predict);
  ASSERT_EQ(v.summaries.size(), 3U);
  EXPECT_EQ(v.summaries[2].inside, 1U);
  EXPECT_EQ(v.summaries[0].ranged, 5U);
  EXPECT_EQ(v.summaries[0].inside, 4U);
  EXPECT_DOUBLE_EQ(v.summaries[0].median_width, 0.2);
  EXPECT_FALSE(v.scores[0].inside);
  EXPECT_TRUE(v.scores[1].inside);
  EXPECT_EQ(v.summaries[1].ranged, 0U);
  EXPECT_FALSE(v.scores[5].range);
}

TEST(Validate, CasesAreAskedAsOfTheirDate) {
  Case dated = case_of({"train", "100"});
  dated.date = "2023-10";
  std::string asked;
  const Predict predict = [&](const std::vector<std::string>& args, const std::string& date) {
    asked = date;
    return read_name(args, date);
  };
  validate({dated}, {}, "", predict);
  EXPECT_EQ(asked, "2023-10");
}

constexpr const char* kSetups =
    R"({"source":"s","args":["--torch","2.0","--flag"],"kind":"stated","says":"the paper"})"
    "\n"
    R"({"label":"lora","args":["--trainer","hf","--torch","2.5"],"kind":"inferred","says":"the label"})";

TEST(StatedSetup, AddsWhatArgumentsDoNotName) {
  const auto setups = parse_stated_setups(kSetups);
  ASSERT_TRUE(setups) << to_string(setups.error());
  EXPECT_FALSE((*setups)[0].inferred);
  Case entry = case_of({"train", "100", "--trainer=none"});
  std::vector<std::string> args = entry.args;
  EXPECT_TRUE(add_stated(entry, *setups, args).empty());
  EXPECT_EQ(args, entry.args);
  entry.source = "s";
  entry.engine = "lora";
  EXPECT_EQ(add_stated(entry, *setups, args), (std::vector<std::size_t>{0}));
  EXPECT_EQ(args, (std::vector<std::string>{"train", "100", "--trainer=none", "--torch", "2.0", "--flag"}));
  entry.source = "t";
  args = entry.args;
  EXPECT_EQ(add_stated(entry, *setups, args), (std::vector<std::size_t>{1}));
  EXPECT_EQ(args, (std::vector<std::string>{"train", "100", "--trainer=none", "--torch", "2.5"}));
}

TEST(StatedSetup, HoldsOnlyWhereAnOptionIsNamed) {
  const auto setups = parse_stated_setups(R"({"source":"s","needs":"--lora","args":["--dropout","0.1"],"says":"x"})");
  ASSERT_TRUE(setups) << to_string(setups.error());
  Case entry = case_of({"train", "100"});
  entry.source = "s";
  std::vector<std::string> args = entry.args;
  EXPECT_TRUE(add_stated(entry, *setups, args).empty());
  entry.args = {"train", "100", "--lora", "8"};
  args = entry.args;
  EXPECT_EQ(add_stated(entry, *setups, args).size(), 1U);
  EXPECT_EQ(args.back(), "0.1");
}

TEST(StatedSetup, RowsAreChecked) {
  for (const char* line :
       {R"({"args":["--a"],"says":"x"})", R"({"label":"l","args":["--a"]})", R"({"label":"l","args":[],"says":"x"})",
        R"({"label":"l","args":["a"],"says":"x"})", R"({"label":"l","args":["--a"],"needs":"lora","says":"x"})",
        R"({"label":"l","args":[],"unit":{"key":"k","taken":2,"perhaps":1},"says":"x"})",
        R"({"label":"l","args":[],"unit":{"taken":1,"perhaps":1},"says":"x"})", "{"})
    EXPECT_FALSE(parse_stated_setups(line)) << line;
  EXPECT_FALSE(stated_setups().empty());
}

TEST(Validate, AsksWithStatedSetupsAndCountsThem) {
  std::vector<Case> cases{case_of({"train", "100"}), case_of({"train", "101"}), case_of({"train", "102"})};
  cases[0].engine = cases[1].engine = "lora";
  std::vector<std::vector<std::string>> asked;
  const Predict predict = [&](const std::vector<std::string>& args, const std::string& date) -> Expected<Json> {
    asked.push_back(args);
    if (args.size() > 2 && args[1] == "101") return fail(ErrorCode::unsupported, "--trainer", "not for this one");
    return read_name(args, date);
  };
  const auto setups = parse_stated_setups(kSetups);
  const Validation v = validate(cases, {}, "", predict, {}, *setups);
  ASSERT_EQ(asked.size(), 4U);
  EXPECT_EQ(asked[0], (std::vector<std::string>{"train", "100", "--trainer", "hf", "--torch", "2.5"}));
  EXPECT_EQ(asked[2], cases[1].args);
  EXPECT_EQ(asked[3], cases[2].args);
  EXPECT_EQ(v.scored, 3U);
  ASSERT_EQ(v.taken.size(), 1U);
  EXPECT_EQ(v.taken[0].cases, 1U);
  EXPECT_EQ(v.taken[0].setup.says, "the label");
}

// A G that may be 1,000 MiB: 100 may be 104.8576.
constexpr const char* kUnit =
    R"({"label":"pytorch","args":[],"unit":{"key":"a_bytes","taken":1000000000,"perhaps":1048576000},"says":"it"})";

TEST(Validate, CountsARangeAsRightThatHasWhatAnOpenUnitAllows) {
  const auto setups = parse_stated_setups(kUnit);
  ASSERT_TRUE(setups) << to_string(setups.error());
  const Predict predict = [](const std::vector<std::string>& args, const std::string&) -> Expected<Json> {
    const double low = std::stod(args[1]);
    return Json{{"a_bytes", 110}, {"a_range_bytes", {low, 200}}, {"b_bytes", 110}, {"b_range_bytes", {low, 200}}};
  };
  std::vector<Case> cases;
  for (const char* low : {"99", "104", "105"}) cases.push_back(case_of({"train", low}, {{"a_bytes", 100}}));
  cases.push_back(case_of({"train", "104"}, {{"b_bytes", 100}}));
  const Validation v = validate(cases, {}, "", predict, {}, *setups);
  ASSERT_EQ(v.scores.size(), 4U);
  EXPECT_TRUE(v.scores[0].inside);
  EXPECT_TRUE(v.scores[1].inside);
  EXPECT_FALSE(v.scores[2].inside);
  EXPECT_FALSE(v.scores[3].inside) << "another quantity";
  EXPECT_DOUBLE_EQ(v.scores[1].perhaps, 104.8576);
  EXPECT_DOUBLE_EQ(v.scores[1].error, 0.1);
  ASSERT_EQ(v.taken.size(), 1U);
  EXPECT_EQ(v.taken[0].only_so, 1U);
  EXPECT_FALSE(validate(cases, {}, "", predict).scores[1].inside);
}

TEST(Validate, KeepsFormulasApartAndFollowsTheKeyPrefix) {
  std::vector<Case> cases{case_of({"train", "100"}), case_of({"train", "101"})};
  cases[1].method = "formula";
  const Validation v = validate(cases, {}, "", read_name);
  ASSERT_EQ(v.summaries.size(), 2U);
  EXPECT_TRUE(v.summaries[0].evidence);
  EXPECT_FALSE(v.summaries[1].evidence);
  EXPECT_TRUE(validate(cases, {}, "nothing", read_name).scores.empty());
}

TEST(Worst, IsByDecreasingError) {
  const Validation v =
      validate({case_of({"train", "101"}), case_of({"train", "90"}), case_of({"train", "100"})}, {}, "", read_name);
  const std::vector<Score> rows = worst(v.scores, 2);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].id, "90");
  EXPECT_EQ(rows[1].id, "101");
}

}  // namespace
}  // namespace ullage::corpus
