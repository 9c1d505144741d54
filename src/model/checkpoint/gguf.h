// GGUF files: their metadata and the tensors they hold, from the header alone.
//
// Versions 2 and 3, little-endian (docs/formats/gguf.md). A model may be split over several files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_source.h"
#include "base/bytes.h"
#include "model/checkpoint/checkpoint.h"
#include "model/ggml_type.h"

namespace ullage::model {

// The numbers are those of the file format.
enum class GgufKind : std::uint8_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

struct GgufValue {
  GgufKind kind = GgufKind::u32;
  std::int64_t whole = 0;             // of whole numbers and booleans; what needs more than 63 bits is kMaxBytes
  double real = 0;                    // of f32 and f64
  std::string text;                   // its first kGgufTextBytes
  GgufKind element{};                 // of an array
  std::int64_t count = 0;             // elements of an array, bytes of a text
  std::vector<std::int64_t> numbers;  // of an array of at most kGgufArrayKept whole numbers or booleans
};

inline constexpr std::int64_t kGgufTextBytes = 1024;    // chat templates are longer, and nobody needs them here
inline constexpr std::int64_t kGgufArrayKept = 10'000;  // a value a layer; vocabularies are longer

struct GgufTensor {
  std::string name;
  std::array<std::int64_t, 4> sizes{1, 1, 1, 1};  // innermost first, as ggml has them
  std::uint8_t rank = 0;
  GgmlType type = GgmlType::f32;
  std::int64_t bytes = 0;   // without the padding behind it
  std::int64_t offset = 0;  // within the data of its file

  std::int64_t elements() const {
    std::int64_t out = 1;
    for (const std::int64_t size : sizes) out = multiply_saturated(out, size);
    return out;
  }
};

struct Gguf {
  std::uint32_t version = 3;
  std::vector<std::pair<std::string, GgufValue>> metadata;  // in the order of the file
  std::vector<GgufTensor> tensors;
  std::int64_t header_bytes = 0;  // up to the first byte of data, the padding in front of it included
  std::int64_t file_bytes = 0;    // of all files
  std::int64_t files = 1;
  bool header_only = false;  // it ends where the data would begin

  const GgufValue* find(std::string_view key) const;
};

// One file. Nothing is allocated for what the file claims before it is known to be there; overlapping tensors, those
// that lie behind the end and a file that was cut off are errors with the place. A file that ends with its header is
// read, with `header_only` set.
Expected<Gguf> read_gguf(ByteSource& source);

// A file and, where its name ends in "-00001-of-00003.gguf" and its metadata say that it was split, all others of its
// set, whichever is named. The metadata are the first part's, the tensors those of all.
Expected<Gguf> read_gguf_files(const std::string& name, const OpenSource& open);

// Its tensors, outermost dimension first.
Checkpoint checkpoint_of(const Gguf& gguf);

}  // namespace ullage::model
