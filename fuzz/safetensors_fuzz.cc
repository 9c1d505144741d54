// Bytes as a safetensors file.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/bytes.h"
#include "model/checkpoint/safetensors.h"

namespace {

using namespace ullage;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto source = memory_source("x", std::string(reinterpret_cast<const char*>(data), size));
  const auto read = model::read_safetensors(*source);
  if (!read) {
    require(!read.error().message.empty());
    require(to_string(read.error()).size() < 1500);
    return 0;
  }
  const std::int64_t bytes = read->tensor_bytes();
  require(read->header_only ? read->header_bytes == source->size_bytes()
                            : read->header_bytes + bytes == source->size_bytes());
  for (const model::StoredTensor& tensor : read->tensors) {
    require(tensor.bytes >= 0 && tensor.sizes.size() <= model::kMaxSafetensorsRank && !tensor.type.name.empty());
  }
  return 0;
}
