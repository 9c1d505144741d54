// What checkpoints of a model store besides its parameters, from the configuration alone.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/architecture.h"

namespace ullage::model {

enum class Extra : std::uint8_t {
  buffers,      // that the module registers as persistent
  predictors,   // layers that predict further tokens, which transformers' class leaves out
  scales,       // of block-wise quantised weights
  tied_head,    // the head again, although it shares the embeddings' memory
  frequencies,  // rotary frequencies, which older releases stored for every layer
  masks,        // causal masks, likewise
  other,        // only ever seen in files
};

// One kind of extra. What the class or the configuration says is certain; the rest is in some checkpoints of such a
// model and not in others, which is only seen from the file.
struct StoredExtra {
  Extra what = Extra::buffers;
  bool certain = false;
  std::int64_t elements = 0;
  std::string_view source;
};

// In the order of Extra; kinds of which there is nothing are left out. `config` is the one that `architecture` was
// built from.
std::vector<StoredExtra> stored_extras(const Architecture& architecture, const JsonObject& config);

}  // namespace ullage::model
