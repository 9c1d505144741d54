#include "report/step_time.h"

#include <span>

#include "speed/roofline.h"

namespace ullage::report {
namespace {

using memory::OpRecord;
using memory::Phase;

// The operators of the last micro-batch: from the forward operator that follows a backward one (or the first), up to
// the optimizer's.
std::span<const OpRecord> last_micro_batch(std::span<const OpRecord> ops) {
  std::size_t begin = 0;
  std::size_t end = ops.size();
  Phase before = Phase::setup;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].phase == Phase::forward && before != Phase::forward && before != Phase::recompute) begin = i;
    if (ops[i].phase == Phase::optimizer && before != Phase::optimizer) end = i;
    before = ops[i].phase;
  }
  return begin < end ? ops.subspan(begin, end - begin) : std::span<const OpRecord>{};
}

}  // namespace

std::optional<double> roofline_seconds_of(const TrainQuestion& question) {
  if (question.gpu == nullptr) return std::nullopt;
  const auto rates = speed::rates_of(*question.gpu, question.options.computed_in());
  if (!rates) return std::nullopt;
  const std::span<const OpRecord> ops = question.run.timeline.ops;
  double seconds = speed::roofline_seconds(ops, *rates);
  if (question.further_micro_batches > 0) {
    seconds +=
        static_cast<double>(question.further_micro_batches) * speed::roofline_seconds(last_micro_batch(ops), *rates);
  }
  return seconds;
}

}  // namespace ullage::report
