// What each format makes of one matrix.
#pragma once

#include <vector>

#include "model/quantisation.h"

namespace ullage::model {

// [rows, columns] = [out, in], as the format stores it; `dtype` is the model's. A bias of its own is not among them.
// Sources by format in the .cc.
std::vector<WeightPart> stored_matrix(const WeightScheme& scheme, std::int64_t rows, std::int64_t columns, DType dtype,
                                      bool has_bias = true);

// Whether the format can hold it: packed ones want whole groups.
bool can_store(const WeightScheme& scheme, std::int64_t rows, std::int64_t columns);

WeightPart plain_part(std::string suffix, std::int64_t elements, DType dtype);

}  // namespace ullage::model
