// Weights as a checkpoint or a card holds them, tensor group by tensor group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/gguf_mix.h"
#include "model/quantisation.h"
#include "report/text_style.h"

namespace ullage::report {

// Equal tensors of all layers and experts share a line.
struct WeightFacts {
  std::string quantisation;  // "fp8", "Q4_K_M"
  std::vector<model::StoredWeight> lines;
  std::int64_t bytes = 0;
  std::int64_t weights = 0;  // that they hold
};

WeightFacts weight_facts(std::string quantisation, std::vector<model::StoredWeight> stored);
WeightFacts weight_facts(std::string mix, const std::vector<model::MixTensor>& tensors);

Json weights_json(const WeightFacts& facts);
void write_weights(TextPage& page, const WeightFacts& facts);

}  // namespace ullage::report
