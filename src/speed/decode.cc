#include "speed/decode.h"

#include <algorithm>

namespace ullage::speed {

double decode_seconds(const DecodeWork& work, const Rates& rates) {
  const double bytes = static_cast<double>(work.weight_bytes) + static_cast<double>(work.cache_bytes);
  return std::max(bytes / rates.bytes_per_s, work.flops / rates.flops_per_s);
}

double decode_flops(std::int64_t active_parameters) { return 2 * static_cast<double>(active_parameters); }

}  // namespace ullage::speed
