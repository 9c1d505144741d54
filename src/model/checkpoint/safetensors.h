// safetensors files: the tensors they hold, from the header alone, and the index of a model in several files.
//
// docs/formats/safetensors.md. Rules of huggingface/safetensors, safetensors/src/tensor.rs.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint/checkpoint.h"

namespace ullage::model {

inline constexpr std::int64_t kMaxSafetensorsHeader = 100'000'000;  // MAX_HEADER_SIZE
inline constexpr std::int64_t kMaxSafetensorsIndex = 256'000'000;
inline constexpr std::size_t kMaxSafetensorsRank = StoredShape::kMaxRank;

std::span<const StoredType> safetensors_types();

// One file. The tensors must cover the data without gaps or overlaps, as the format demands; a file that ends with its
// header is read, with `header_only` set.
Expected<Checkpoint> read_safetensors(ByteSource& source);

// Which file holds which tensor (model.safetensors.index.json).
struct SafetensorsIndex {
  struct Entry {
    std::string_view tensor;  // a view of the source or of `unescaped`
    std::uint32_t file = 0;   // index into `files`
  };
  std::optional<std::int64_t> total_bytes;  // metadata.total_size, as its writer counted
  std::vector<std::string> files;           // in the order in which they are named first; plain names below the folder
  std::vector<Entry> entries;               // in the order of the document
  std::deque<std::string> unescaped;
};

// `source` must outlive the result.
Expected<SafetensorsIndex> read_safetensors_index(ByteSource& source);

// All files that the index at `path` names; its folder is where they are. A tensor that the index promises and its
// file does not hold is an error.
Expected<Checkpoint> read_safetensors_set(const std::string& path, const OpenSource& open);

}  // namespace ullage::model
