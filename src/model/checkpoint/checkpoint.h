// What the files of a checkpoint store, whatever their format: tensors by name, shape and type.
#pragma once

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

struct StoredTensor {
  std::string name;
  std::vector<std::int64_t> sizes;  // outermost first
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
