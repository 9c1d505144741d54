#include "model/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include "model/checkpoint_bytes.h"

namespace ullage::model {
namespace {

std::string problem(const std::string& content) {
  const auto got = read_safetensors(*memory_source("x.safetensors", content));
  return got ? "read" : to_string(got.error());
}

std::string problem_of_header(std::string_view header, std::size_t data = 8) {
  return problem(safetensors_bytes(header, data));
}

constexpr std::string_view kTwo =
    R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
    R"("a":{"dtype":"F4","shape":[2,4],"data_offsets":[4,8]}}  )";

TEST(Safetensors, ReadsTensorsInTheOrderOfTheFile) {
  const auto file = read_safetensors(*memory_source("x", safetensors_bytes(kTwo, 8)));
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_EQ(file->tensors.size(), 2U);
  EXPECT_EQ(file->tensors[0].name, "b");
  EXPECT_EQ(file->tensors[1].type.name, "F4");
  const StoredShape& shape = file->tensors[1].sizes;
  EXPECT_EQ(std::vector<std::int64_t>(shape.begin(), shape.end()), (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(file->tensors[1].elements, 8);
  EXPECT_EQ(file->tensors[1].bytes, 4);
  EXPECT_EQ(file->tensor_bytes(), 8);
  EXPECT_EQ(file->elements(), 10);
  EXPECT_FALSE(file->header_only);
}

TEST(Safetensors, AFileMayEndWithItsHeader) {
  const auto file = read_safetensors(*memory_source("x", safetensors_bytes(kTwo, 0)));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->header_only);
  EXPECT_EQ(problem_of_header(kTwo, 7),
            "x.safetensors: has 7 bytes of tensors, its header promises 8; fetch the whole "
            "file again");
  EXPECT_EQ(problem_of_header(kTwo, 9),
            "x.safetensors: has 9 bytes of tensors, its header promises 8; fetch the whole "
            "file again");
}

TEST(Safetensors, EveryCutIsAnError) {
  const std::string whole = safetensors_bytes(kTwo, 8);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    if (size == 8 + kTwo.size()) continue;  // the header alone
    EXPECT_NE(problem(whole.substr(0, size)), "read") << size;
  }
}

TEST(Safetensors, RefusesWhatIsNone) {
  EXPECT_EQ(problem("\xff\xff\xff\xff\xff\xff\xff\xff{}"),
            "x.safetensors: is no safetensors file: it would begin with a header of 18446744073709551615 bytes; at "
            "most 100000000 are possible");
  EXPECT_EQ(problem(Bytes().add(std::uint64_t{90'000'000}).raw("{}").str()),
            "x.safetensors: ends at byte 10; 90000000 bytes from byte 8 on were expected; fetch the whole file again");
  EXPECT_EQ(problem_of_header("[1]"),
            "x.safetensors: byte 8: is not the JSON of a safetensors header here; fetch the whole file again");
}

TEST(Safetensors, RefusesTensorsThatCannotBe) {
  const auto says = [](std::string_view header, std::string_view part) {
    EXPECT_NE(problem_of_header(header).find(part), std::string::npos) << problem_of_header(header);
  };
  says(R"({"t":{"dtype":"Q8","shape":[1],"data_offsets":[0,8]}})", "is of type 'Q8', which is not known");
  says(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", "takes bytes 0 to 8, but its shape and type 4");
  says(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "takes bytes 8 to 0, but its shape and type 8");
  says(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[8]}})", "lacks its dtype or its data_offsets");
  says(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})", "lacks its dtype or its data_offsets");
  says(R"({"t":{"shape":[2],"data_offsets":[0,8]}})", "lacks its dtype or its data_offsets");
  says(R"({"t":{"dtype":"F4","shape":[3],"data_offsets":[0,8]}})", "does not end at a whole byte");
  says(R"({"t":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})",
       "more elements than can be counted");
  says(R"({"t":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", "has more than 8 dimensions");
  says(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"u":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "'u' overlaps another");
  says(R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"u":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "'u' leaves a gap in front");
  says(R"({"t":{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}})", "is not the JSON of a safetensors header");
  says(R"({"t":5})", "is not the JSON of a safetensors header");
  says(R"({"t":{"dtype":"F32","shape":[2,],"data_offsets":[0,8]}})", "is not the JSON of a safetensors header");
  says(R"({"t":{"dtype":"F32","shape":[,2],"data_offsets":[0,8]}})", "is not the JSON of a safetensors header");
  says(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8,]}})", "is not the JSON of a safetensors header");
  says(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,08]}})", "is not the JSON of a safetensors header");
}

// The order of members, blanks and members that nobody knows make no difference.
TEST(Safetensors, AreReadInAnyForm) {
  for (const char* tensor : {R"({"dtype":"F32","shape":[2,1],"data_offsets":[0,8]})",
                             R"({"shape":[2,1],"data_offsets":[0,8],"dtype":"F32"})",
                             R"( { "dtype" : "F32" , "shape" : [ 2 , 1 ] , "data_offsets" : [ 0 , 8 ] } )",
                             R"({"dtype":"F32","shape":[2,1],"more":[1,{}],"data_offsets":[0,8]})",
                             R"({"dtype":"F32","shape":[2,1],"data_offsets":[0,8],"more":null})",
                             R"({"dtype":"F\u00332","shape":[ 2,1],"data_offsets":[0, 8]})"}) {
    const auto source = memory_source("x", safetensors_bytes("{\"t\":" + std::string(tensor) + "}", 8));
    const auto file = read_safetensors(*source);
    ASSERT_TRUE(file) << tensor << ": " << to_string(file.error());
    ASSERT_EQ(file->tensors.size(), 1u);
    const StoredTensor& read = file->tensors.front();
    EXPECT_EQ(read.type.name, "F32") << tensor;
    EXPECT_EQ(std::vector<std::int64_t>(read.sizes.begin(), read.sizes.end()), (std::vector<std::int64_t>{2, 1}))
        << tensor;
    EXPECT_EQ(read.bytes, 8) << tensor;
  }
}

std::string one_tensor(std::string_view name) {
  return safetensors_bytes("{\"" + std::string(name) + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
}

constexpr std::string_view kIndex =
    R"({"metadata":{"total_size":16,"more":"x"},"weight_map":{"a":"1.safetensors","b\n":"2.safetensors",)"
    R"("c":"1.safetensors"}})";

TEST(SafetensorsIndex, IsRead) {
  const auto source = memory_source("i", std::string(kIndex));
  const auto index = read_safetensors_index(*source);
  ASSERT_TRUE(index) << to_string(index.error());
  EXPECT_EQ(index->total_bytes, 16);
  EXPECT_EQ(index->files, (std::vector<std::string>{"1.safetensors", "2.safetensors"}));
  ASSERT_EQ(index->entries.size(), 3U);
  EXPECT_EQ(index->entries[1].tensor, "b\n");
  EXPECT_EQ(index->entries[2].file, 0U);
}

TEST(SafetensorsIndex, SaysWhatIsWrong) {
  const auto problem_of = [](std::string_view text) {
    const auto source = memory_source("i", std::string(text));
    const auto got = read_safetensors_index(*source);
    return got ? "read" : to_string(got.error());
  };
  EXPECT_EQ(problem_of("{}"), "i: byte 2: names no files in weight_map; this is no index of a model");
  EXPECT_EQ(problem_of("{\"weight_map\":{}}"), "i: byte 17: names no files in weight_map; this is no index of a model");
  EXPECT_EQ(problem_of("{\"weight_map\":{\"a\":1}}"),
            "i: byte 19: is not the JSON of an index here; fetch the whole file again");
  for (const char* file : {"/etc/passwd", "../x", "a/../../x", "", "..\\\\x"})
    EXPECT_NE(problem_of(std::string("{\"weight_map\":{\"a\":\"") + file + "\"}}").find("outside of its folder"),
              std::string::npos)
        << file;
  EXPECT_EQ(problem_of("{\"metadata\":{\"total_size\":1.5e3},\"weight_map\":{\"a\":\"x\"}}"), "read");
}

TEST(SafetensorsSet, HoldsTheTensorsOfAllFiles) {
  const std::string index = R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})";
  const auto whole = read_safetensors_set(
      "d/i.json",
      opener({{"d/i.json", index}, {"d/1.safetensors", one_tensor("a")}, {"d/2.safetensors", one_tensor("b")}}));
  ASSERT_TRUE(whole) << to_string(whole.error());
  EXPECT_EQ(whole->files, 2);
  EXPECT_EQ(whole->tensor_bytes(), 16);
  const auto missing =
      read_safetensors_set("d/i.json", opener({{"d/i.json", index}, {"d/1.safetensors", one_tensor("a")}}));
  ASSERT_FALSE(missing);
  EXPECT_EQ(to_string(missing.error()),
            "d/2.safetensors: is missing, one of 2 files of this model; fetch it into the folder of the index");
  const auto other = read_safetensors_set(
      "i.json", opener({{"i.json", index}, {"1.safetensors", one_tensor("a")}, {"2.safetensors", one_tensor("c")}}));
  ASSERT_FALSE(other);
  EXPECT_EQ(to_string(other.error()),
            "i.json: promises tensor 'b' in 2.safetensors, which does not hold it; fetch both again");
}

}  // namespace
}  // namespace ullage::model
