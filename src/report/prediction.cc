#include "report/prediction.h"

namespace ullage::report {

memory::Footprint footprint_of(const Prediction& prediction) {
  memory::Footprint out;
  for (const ComponentLine& line : prediction.components) {
    out.lines.push_back(
        {line.component, line.bytes, line.level, {render(line.why.rule), line.why.values, line.why.source}});
  }
  out.allocated_bytes = prediction.peak.allocated_bytes;
  out.reserved_bytes = prediction.peak.reserved_bytes;
  out.process_bytes = prediction.peak.process_bytes;
  out.reserved_range = prediction.peak.reserved_range;
  out.process_range = prediction.peak.process_range;
  return out;
}

}  // namespace ullage::report
