#include "engines/pytorch/splice.h"

namespace ullage::engines::pytorch {

TrainRun whole(RecordedStep step) {
  TrainRun out;
  const auto end = static_cast<std::uint32_t>(step.timeline.events.size());
  const auto or_end = [&](std::uint32_t moment) { return moment == 0 ? end : moment; };
  out.before_step = step.moments.before_step;
  out.after_forward = or_end(step.moments.after_forward);
  out.after_backward = or_end(step.moments.after_backward);
  out.after_step = or_end(step.moments.after_step);
  out.timeline = std::move(step.timeline);
  return out;
}

std::optional<TrainRun> run_spliced(const model::Architecture&, const std::function<RecordedStep(const model::Architecture&)>&) {
  return std::nullopt;
}

}  // namespace ullage::engines::pytorch
