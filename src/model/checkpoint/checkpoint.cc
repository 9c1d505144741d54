#include "model/checkpoint/checkpoint.h"

#include "base/bytes.h"

namespace ullage::model {

std::int64_t Checkpoint::tensor_bytes() const {
  std::int64_t out = 0;
  for (const StoredTensor& tensor : tensors) out = add_saturated(out, tensor.bytes);
  return out;
}

std::int64_t Checkpoint::elements() const {
  std::int64_t out = 0;
  for (const StoredTensor& tensor : tensors) out = add_saturated(out, tensor.elements);
  return out;
}

}  // namespace ullage::model
