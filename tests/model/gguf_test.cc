#include "model/checkpoint/gguf.h"

#include <gtest/gtest.h>

#include "model/checkpoint_bytes.h"

namespace ullage::model {
namespace {

Expected<Gguf> read(const std::string& content) { return read_gguf(*memory_source("x.gguf", content)); }

std::string problem(const std::string& content) {
  const auto got = read(content);
  return got ? "read" : to_string(got.error());
}

// Two tensors of 32 and 64 fp32 elements and 34 bytes of Q8_0.
std::string small(std::uint32_t version = 3) {
  Bytes out = gguf_start(2, 1, version);
  add_number(out, "llama.block_count", 2);
  add_tensor(out, "a", 0, 8, 4, 0);
  add_tensor(out, "b", 8, 32, 1, 128);
  return out.pad(32).raw(std::string(128 + 34, '\0')).str();
}

TEST(Gguf, ReadsBothVersions) {
  for (const std::uint32_t version : {2U, 3U}) {
    const auto file = read(small(version));
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_EQ(file->version, version);
    ASSERT_EQ(file->tensors.size(), 2U);
    EXPECT_EQ(file->tensors[0].name, "a");
    EXPECT_EQ(file->tensors[0].sizes[0], 8);
    EXPECT_EQ(file->tensors[0].elements(), 32);
    EXPECT_EQ(file->tensors[0].bytes, 128);
    EXPECT_EQ(file->tensors[1].type, GgmlType::q8_0);
    EXPECT_EQ(file->tensors[1].bytes, 34);
    EXPECT_EQ(file->find("llama.block_count")->whole, 2);
    EXPECT_EQ(file->find("llama"), nullptr);
    EXPECT_FALSE(file->header_only);
  }
}

TEST(Gguf, AFileMayEndWithItsHeader) {
  const std::string whole = small();
  const std::size_t header = whole.size() - (128 + 34);
  for (const std::size_t size : {header, header - 1}) {  // the padding in front of the data may be missing
    const auto file = read(whole.substr(0, size));
    ASSERT_TRUE(file) << size << ": " << to_string(file.error());
    EXPECT_TRUE(file->header_only);
    EXPECT_EQ(file->header_bytes, static_cast<std::int64_t>(header));
  }
  EXPECT_EQ(problem(whole.substr(0, header + 1)),
            "x.gguf: byte " + std::to_string(header + 1) +
                ": the file ends here, 161 bytes before its last tensor 'b' does; fetch it again");
}

TEST(Gguf, EveryCutOfTheHeaderIsAnError) {
  const std::string whole = small();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto got = read(whole.substr(0, size));
    if (got) EXPECT_TRUE(got->header_only) << size;
    else EXPECT_EQ(got.error().code, ErrorCode::malformed) << size;
  }
}

TEST(Gguf, SaysWhichFilesAreNotRead) {
  EXPECT_EQ(problem("PK\3\4 some archive"), "x.gguf: byte 0: is no GGUF file: it does not begin with the letters GGUF");
  EXPECT_EQ(problem(gguf_start(0, 0, 1).str()),
            "x.gguf: byte 4: GGUF version 1 is not read; versions 2 and 3 are: convert the model anew with a current "
            "llama.cpp");
  EXPECT_EQ(problem(gguf_start(0, 0, 0x03000000).str()),
            "x.gguf: byte 4: is a big-endian GGUF file; convert it with gguf_convert_endian.py of llama.cpp");
  EXPECT_EQ(problem("GGU"),
            "x.gguf: byte 0: the file ends at byte 3, 4 bytes were expected here; fetch the whole file again");
}

TEST(Gguf, HugeClaimsAreRefusedBeforeAnythingIsAllocated) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;
  EXPECT_EQ(problem(gguf_start(kHuge, 0).str()),
            "x.gguf: byte 16: claims 4611686018427387904 tensors, more than its 24 bytes can hold; fetch the whole "
            "file again");
  EXPECT_EQ(problem(gguf_start(0, ~std::uint64_t{0}).str()),
            "x.gguf: byte 24: claims 18446744073709551615 metadata entries, more than its 24 bytes can hold; fetch the "
            "whole file again");
  Bytes array = gguf_start(0, 1);
  array.text("key").add<std::uint32_t>(9).add<std::uint32_t>(8).add(kHuge);
  EXPECT_NE(problem(array.str()).find("elements of an array"), std::string::npos);
  for (const std::uint64_t length : {kHuge, ~std::uint64_t{0}, std::uint64_t{7}}) {
    Bytes text = gguf_start(0, 1);
    text.text("key").add<std::uint32_t>(8).add(length).raw("123456");
    EXPECT_NE(problem(text.str()).find("bytes were expected here"), std::string::npos) << problem(text.str());
  }
  Bytes key = gguf_start(0, 1);
  key.add(std::uint64_t{70'000}).raw(std::string(80'000, 'k'));
  EXPECT_NE(problem(key.str()).find("has more than 65535 bytes"), std::string::npos);
}

std::string with_tensors(std::uint64_t row, std::uint64_t rows, std::uint32_t type, std::uint64_t second_at) {
  Bytes out = gguf_start(2, 0);
  add_tensor(out, "first", type, row, rows, 0);
  add_tensor(out, "second", 0, 8, 1, second_at);
  return out.pad(32).raw(std::string(4096, '\0')).str();
}

TEST(Gguf, RefusesTensorsThatCannotBe) {
  EXPECT_EQ(problem(with_tensors(8, 4, 0, 128)), "read");
  EXPECT_EQ(problem(with_tensors(8, 4, 0, 96)),
            "x.gguf: byte 115: tensors 'first' and 'second' overlap; the file is damaged");
  const auto says = [](const std::string& content, std::string_view part) {
    EXPECT_NE(problem(content).find(part), std::string::npos) << problem(content);
  };
  says(with_tensors(8, 4, 0, 129), "lies at 129, not a multiple of 32 bytes");
  says(with_tensors(33, 1, 8, 128), "has rows of 33 elements, not whole blocks of Q8_0's 32");
  says(with_tensors(8, 1, 99, 128), "is of type 99, which ggml does not have");
  says(with_tensors(std::uint64_t{1} << 40, std::uint64_t{1} << 40, 0, 128), "more elements than can be counted");
  says(with_tensors(8, ~std::uint64_t{0}, 0, 128), "has a negative size");
  says(with_tensors(8, 1, 0, std::uint64_t{1} << 62), "before its last tensor 'second' does");
  Bytes twice = gguf_start(2, 0);
  add_tensor(twice, "same", 0, 8, 1, 0);
  add_tensor(twice, "same", 0, 8, 1, 32);
  says(twice.str(), "holds tensor 'same' twice");
  Bytes ranked = gguf_start(1, 0);
  ranked.text("r").add<std::uint32_t>(5).raw(std::string(60, '\0'));
  says(ranked.str(), "has 5 dimensions; at most 4 are possible");
  Bytes nested = gguf_start(0, 1);
  nested.text("key").add<std::uint32_t>(9).add<std::uint32_t>(9).raw(std::string(16, '\0'));
  says(nested.str(), "array of arrays");
  Bytes aligned = gguf_start(0, 1);
  add_number(aligned, "general.alignment", 48);
  says(aligned.str(), "general.alignment is 48; expected a power of two");
  Bytes kind = gguf_start(0, 1);
  kind.text("key").add<std::uint32_t>(13).raw("12345678");
  says(kind.str(), "13 is no kind of value");
}

std::string part(std::uint16_t number, std::uint16_t count, std::string_view tensor, std::uint16_t tensors = 2) {
  Bytes out = gguf_start(1, 3);
  out.text("split.no").add<std::uint32_t>(2).add(number);
  out.text("split.count").add<std::uint32_t>(2).add(count);
  out.text("split.tensors.count").add<std::uint32_t>(5).add<std::int32_t>(tensors);
  add_tensor(out, tensor, 0, 8, 1, 0);
  return out.pad(32).raw(std::string(32, '\0')).str();
}

TEST(GgufFiles, AnyPartNamesTheWhole) {
  const auto open =
      opener({{"d/m-00001-of-00002.gguf", part(0, 2, "a")}, {"d/m-00002-of-00002.gguf", part(1, 2, "b")}});
  for (const char* name : {"d/m-00001-of-00002.gguf", "d/m-00002-of-00002.gguf"}) {
    const auto whole = read_gguf_files(name, open);
    ASSERT_TRUE(whole) << to_string(whole.error());
    EXPECT_EQ(whole->files, 2);
    ASSERT_EQ(whole->tensors.size(), 2U);
    EXPECT_EQ(whole->tensors[1].name, "b");
  }
}

TEST(GgufFiles, SayWhichPartIsMissingOrWrong) {
  const auto problem_of = [](std::map<std::string, std::string> files, const char* name = "m-00001-of-00002.gguf") {
    const auto got = read_gguf_files(name, opener(std::move(files)));
    return got ? "read" : to_string(got.error());
  };
  EXPECT_EQ(problem_of({{"m-00001-of-00002.gguf", part(0, 2, "a")}}),
            "m-00002-of-00002.gguf: is missing, part 2 of 2 of this model; put all parts into one folder");
  EXPECT_EQ(problem_of({{"m-00001-of-00002.gguf", part(0, 2, "a")}, {"m-00002-of-00002.gguf", part(0, 2, "b")}}),
            "m-00002-of-00002.gguf: is named part 2 of 2, but says of itself that it is part 1 of 2");
  EXPECT_EQ(problem_of({{"m-00001-of-00002.gguf", part(0, 2, "a")}, {"m-00002-of-00002.gguf", part(1, 2, "a")}}),
            "m-00001-of-00002.gguf: two parts hold tensor 'a'");
  EXPECT_EQ(problem_of({{"m-00001-of-00002.gguf", part(0, 2, "a", 3)}, {"m-00002-of-00002.gguf", part(1, 2, "b")}}),
            "m-00001-of-00002.gguf: its parts hold 2 tensors, 3 were expected; fetch all parts again");
  EXPECT_EQ(problem_of({{"m.gguf", part(0, 2, "a")}}, "m.gguf"),
            "m.gguf: is one part of several, but is not named like one (NAME-00001-of-00002.gguf); give it its name "
            "back");
  EXPECT_EQ(problem_of({}, "m.gguf"), "m.gguf: no such file");
}

}  // namespace
}  // namespace ullage::model
