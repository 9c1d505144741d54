// What the files of a checkpoint store, whatever their format: tensors by name, shape and type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace ullage::model {

// How elements lie in a file: blocks of some of them.
struct StoredType {
  std::string_view name;  // as the format calls it: "BF16", "F8_E4M3", "Q4_K"
  std::int64_t block = 1;
  std::int64_t bytes_of_block = 0;
};

// Sizes of a tensor, outermost first: of few dimensions, so that they lie in the tensor itself.
class StoredShape {
 public:
  static constexpr std::size_t kMaxRank = 8;

  std::size_t size() const { return rank_; }
  std::int64_t operator[](std::size_t i) const { return sizes_[i]; }
  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }
  void clear() { rank_ = 0; }
  void push_back(std::int64_t size) { sizes_[rank_++] = size; }  // while there are fewer than kMaxRank

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  std::size_t rank_ = 0;
};

struct StoredTensor {
  std::string name;
  StoredShape sizes;
  StoredType type;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
};

enum class CheckpointFormat : std::uint8_t { gguf, safetensors };

struct Checkpoint {
  CheckpointFormat format = CheckpointFormat::safetensors;
  std::vector<StoredTensor> tensors;
  std::int64_t files = 0;
  std::int64_t header_bytes = 0;
  std::int64_t file_bytes = 0;
  bool header_only = false;  // at least one file ends with its header

  std::int64_t tensor_bytes() const;
  std::int64_t elements() const;
};

// How a reader gets at the other files of a set. ErrorCode::not_found where there is none of that name.
using OpenSource = std::function<Expected<std::unique_ptr<ByteSource>>(const std::string& name)>;

}  // namespace ullage::model
