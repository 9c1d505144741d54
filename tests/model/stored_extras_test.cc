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
#include "model/quantisation.h"

namespace ullage::model {
namespace {

const std::map<Extra, std::string> kNames{{Extra::buffers, "buffers"},         {Extra::predictors, "predictors"},
                                          {Extra::scales, "scales"},           {Extra::tied_head, "tied_head"},
                                          {Extra::frequencies, "frequencies"}, {Extra::masks, "masks"}};

struct Counted {
  std::int64_t parameters = 0;
  std::map<std::string, std::int64_t> extras;
  std::set<std::string> certain;  // kinds of extras that every such checkpoint stores, buffers apart

  std::int64_t of(const char* extra) const {
    const auto found = extras.find(extra);
    return found == extras.end() ? 0 : found->second;
  }
  std::int64_t values() const {
    std::int64_t out = parameters;
    for (const auto& [name, elements] : extras) out += elements;
    return out;
  }
};

Counted count(const Architecture& architecture, const Json& config, const std::set<std::string>& said) {
  Counted out;
  out.parameters = parameter_count(architecture);
  for (const StoredExtra& extra : stored_extras(architecture, JsonObject(config, "config"))) {
    const std::string& name = kNames.at(extra.what);
    if (extra.certain && extra.what != Extra::buffers) out.certain.insert(name);
    if (extra.certain || said.count(name) > 0) out.extras[name] = extra.elements;
  }
  return out;
}

std::set<std::string> texts(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() ? std::set<std::string>() : found->get<std::set<std::string>>();
}

DType dtype_of(const Json& config) {
  const std::string name = config.value("torch_dtype", "bfloat16");
  return name == "float32" ? DType::f32 : name == "float16" ? DType::f16 : DType::bf16;
}

Json quantisation_of(const Json& config) {
  if (config.contains("quantization_config")) return config["quantization_config"];
  return config.contains("text_config") ? quantisation_of(config["text_config"]) : Json(nullptr);
}

// Elements of the tensors that a quantised checkpoint holds, as the Hub counts them: scalars, which have no
// dimensions, are none.
std::int64_t packed_elements(const Architecture& architecture, const Json& config) {
  const Json quantisation = quantisation_of(config);
  const auto read = read_quantisation(JsonObject(quantisation, "config"));
  EXPECT_TRUE(read) << to_string(read.error());
  std::int64_t out = 0;
  for (const StoredWeight& weight : stored_weights(architecture, *read, dtype_of(config))) {
    for (const WeightPart& part : weight.parts) {
      const bool scalar = part.elements == 1 && part.suffix.find("scale") != part.suffix.npos;
      out += scalar ? 0 : part.elements * weight.copies;
    }
  }
  return out;
}

// The Hub takes an int32 or int64 of a checkpoint in four bits for eight weights, the sizes of a packed weight too.
std::int64_t counted_again(const Architecture& architecture, const Json& config) {
  const Json quantisation = quantisation_of(config);
  const auto read = read_quantisation(JsonObject(quantisation, "config")).value();
  std::int64_t out = 0;
  for (const StoredWeight& weight : stored_weights(architecture, read, DType::bf16)) {
    if (!weight.name.starts_with(architecture.layer_prefix)) continue;
    for (const WeightPart& part : weight.parts) {
      if (part.suffix == ".weight_shape") out += 7 * part.elements * weight.copies;
    }
  }
  return out;
}

// counted: what the row's number is of. "parameters": what transformers writes into an index as total_parameters, each
// parameter once and no buffers; "tensors": of a packed checkpoint, see above; else every stored value.
std::int64_t values_of_row(const Json& row, const Architecture& architecture, const Json& config,
                           const Counted& counted) {
  const std::string what = row.value("counted", "values");
  if (what == "parameters") return counted.parameters;
  if (what == "tensors") return packed_elements(architecture, config) + counted.of("predictors");
  if (what == "sizes_as_eight") return counted.values() + counted_again(architecture, config);
  return counted.values();
}

std::int64_t buffer_bytes(const std::vector<Buffer>& buffers, DType dtype) {
  std::int64_t out = 0;
  for (const Buffer& buffer : buffers) {
    std::int64_t elements = buffer.persistent ? 1 : 0;
    for (const std::int64_t size : buffer.sizes) elements *= size;
    out += elements * size_of(buffer.in_model_dtype ? dtype : buffer.dtype);
  }
  return out;
}

// Of a checkpoint in one type. frequency_bytes, mask_bits, masked_bias_bytes: how it stores what older releases did;
// bytes_without: extras that the file with the count has and the one with the size has not.
std::int64_t bytes_of_row(const Json& row, const Counted& counted, const Architecture& architecture,
                          const Json& config) {
  const DType dtype = dtype_of(config);
  const std::set<std::string> without = texts(row, "bytes_without");
  std::int64_t out = counted.parameters * size_of(dtype) + buffer_bytes(architecture.buffers, dtype);
  for (std::int64_t layer = 0; layer < architecture.layer_count(); ++layer)
    out += buffer_bytes(architecture.kind_of(layer).buffers, dtype);
  for (const char* extra : {"predictors", "tied_head"}) {
    if (without.count(extra) == 0) out += counted.of(extra) * size_of(dtype);
  }
  if (without.count("frequencies") == 0) out += counted.of("frequencies") * row.value("frequency_bytes", 0);
  return out + counted.of("masks") * row.value("mask_bits", 0) / 8 +
         architecture.layer_count() * row.value("masked_bias_bytes", 0);
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
  Json config = entry->config;
  if (row.contains("set")) config.merge_patch(row["set"]);
  const auto built = build_outline(config, model);
  const bool part = built && !built->notes.empty();  // a wrapper's text model alone
  if (!built || part) {
    ++tally.unmodelled;
    return;
  }
  const std::set<std::string> said = texts(row, "extras");
  const Counted counted = count(*built, config, said);
  const std::int64_t values = values_of_row(row, *built, config, counted);
  if (row.contains("open")) {
    ++tally.open;
    // A difference that is gone is to be taken off the list.
    if (row.contains("stored_parameters")) {
      EXPECT_NE(values, row["stored_parameters"].get<std::int64_t>()) << model;
    }
    return;
  }
  EXPECT_TRUE(std::includes(said.begin(), said.end(), counted.certain.begin(), counted.certain.end())) << model;
  if (row.contains("stored_parameters")) {
    ++tally.counted;
    EXPECT_EQ(values, row["stored_parameters"].get<std::int64_t>()) << model;
  }
  // Those of packed weights are held in quantisation_test.cc.
  if (row.contains("stored_bytes") && !row.value("packed", false)) {
    ++tally.sized;
    EXPECT_EQ(bytes_of_row(row, counted, *built, config), row["stored_bytes"].get<std::int64_t>()) << model;
  }
}

TEST(StoredExtras, AreThoseOfPublishedCheckpoints) {
  std::ifstream in(std::string(ULLAGE_TEST_DATA) + "/stored-values.jsonl");
  Tally tally;
  for (std::string line; std::getline(in, line);) check_row(parse_json(line, "row").value(), tally);
  std::printf("values of %d checkpoints, bytes of %d; open %d, not modelled %d\n", tally.counted, tally.sized,
              tally.open, tally.unmodelled);
  EXPECT_GE(tally.counted, 109);
  EXPECT_GE(tally.sized, 33);
  EXPECT_EQ(tally.open, 0);
}

}  // namespace
}  // namespace ullage::model
