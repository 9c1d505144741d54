// What published checkpoints store, counted from their headers and indices elsewhere, against the rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/lines.h"
#include "model/catalogue.h"
#include "model/checkpoint/extras.h"
#include "model/outline.h"

namespace ullage::model {
namespace {

const std::map<Extra, std::string> kNames{{Extra::predictors, "predictors"},
                                          {Extra::scales, "scales"},
                                          {Extra::tied_head, "tied_head"},
                                          {Extra::frequencies, "frequencies"},
                                          {Extra::masks, "masks"}};

struct Counted {
  std::int64_t values = 0;   // of everything that the row's checkpoint stores
  std::int64_t weights = 0;  // the same without frequencies and masks
  std::int64_t frequencies = 0;
  std::int64_t masks = 0;
  std::set<std::string> certain;  // kinds of extras that every such checkpoint stores, buffers apart
};

Counted count(const Architecture& architecture, const Json& config, const std::set<std::string>& said) {
  Counted out;
  out.weights = parameter_count(architecture);
  for (const StoredExtra& extra : stored_extras(architecture, JsonObject(config, "config"))) {
    const std::string name = extra.what == Extra::buffers ? "" : kNames.at(extra.what);
    if (extra.certain && !name.empty()) out.certain.insert(name);
    if (!extra.certain && said.count(name) == 0) continue;
    if (extra.what == Extra::frequencies) out.frequencies = extra.elements;
    else if (extra.what == Extra::masks) out.masks = extra.elements;
    else out.weights += extra.elements;
  }
  out.values = out.weights + out.frequencies + out.masks;
  return out;
}

std::set<std::string> texts(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() ? std::set<std::string>() : found->get<std::set<std::string>>();
}

std::int64_t bytes_of_row(const Json& row, const Counted& counted, const Json& config, std::int64_t layers) {
  const std::string dtype = config.value("torch_dtype", "bfloat16");
  const std::int64_t weights = counted.weights * (dtype == "float32" ? 4 : 2);
  if (!texts(row, "bytes_without").empty()) return weights;
  return weights + counted.frequencies * row.value("frequency_bytes", 0) +
         counted.masks * row.value("mask_bits", 0) / 8 + layers * row.value("masked_bias_bytes", 0);
}

struct Tally {
  int counted = 0;
  int sized = 0;
  int open = 0;
  int unmodelled = 0;
};

void check_row(const Json& row, Tally& tally) {
  const std::string model = row["model"];
  const auto entry = find_model(model);
  ASSERT_TRUE(entry) << model;
  const auto built = build_outline(entry->config, model);
  const bool part = built && !built->notes.empty();  // a wrapper's text model alone
  if (!built || part) {
    ++tally.unmodelled;
    return;
  }
  const std::set<std::string> said = texts(row, "extras");
  const Counted counted = count(*built, entry->config, said);
  if (row.contains("open")) {
    ++tally.open;
    // A difference that is gone is to be taken off the list.
    if (row.contains("stored_parameters")) {
      EXPECT_NE(counted.values, row["stored_parameters"].get<std::int64_t>()) << model;
    }
    return;
  }
  EXPECT_TRUE(std::includes(said.begin(), said.end(), counted.certain.begin(), counted.certain.end())) << model;
  if (row.contains("stored_parameters")) {
    ++tally.counted;
    EXPECT_EQ(counted.values, row["stored_parameters"].get<std::int64_t>()) << model;
  }
  if (row.contains("stored_bytes") && !row.contains("open_bytes")) {
    ++tally.sized;
    EXPECT_EQ(bytes_of_row(row, counted, entry->config, built->layer_count()), row["stored_bytes"].get<std::int64_t>())
        << model;
  }
}

TEST(StoredExtras, AreThoseOfPublishedCheckpoints) {
  std::ifstream in(std::string(ULLAGE_TEST_DATA) + "/stored-values.jsonl");
  Tally tally;
  for (std::string line; std::getline(in, line);) check_row(parse_json(line, "row").value(), tally);
  std::printf("values of %d checkpoints, bytes of %d; open %d, not modelled %d\n", tally.counted, tally.sized,
              tally.open, tally.unmodelled);
  EXPECT_GE(tally.counted, 90);
  EXPECT_GE(tally.sized, 25);
  EXPECT_LE(tally.open, 17);
}

}  // namespace
}  // namespace ullage::model
