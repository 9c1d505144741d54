#include "engines/pytorch/reserve.h"

#include <algorithm>

#include "memory/timeline_replay.h"

namespace ullage::engines::pytorch {
namespace {

// What a step finds in the cache settles within two; more are tried where a full card gives back and takes again.
constexpr int kMostSteps = 4;

class Program {
 public:
  explicit Program(const ReserveQuestion& question)
      : question_(question), allocator_(question.settings, question.card), replay_(allocator_) {}

  Reserved run() {
    if (!set_up()) return out_;
    std::int64_t before = -1;
    for (int i = 0; i < kMostSteps && allocator_.reserved_bytes() != before; ++i) {
      before = allocator_.reserved_bytes();
      if (i > 0) replay_.carry_over(question_.step.timeline, question_.step.before_step);
      if (!step()) return out_;
    }
    for (const memory::SegmentEvent& event : allocator_.segment_events())
      out_.gave_back = out_.gave_back || event.kind == memory::EventKind::segment_free ||
                       event.kind == memory::EventKind::segment_unmap;
    return out_;
  }

 private:
  bool set_up() {
    if (question_.first == nullptr) return play(question_.step, 0, question_.step.before_step, false);
    const memory::Timeline& first = question_.first->timeline;
    if (!play(*question_.first, 0, static_cast<std::uint32_t>(first.events.size()), true)) return false;
    replay_.carry_over(question_.step.timeline, question_.step.before_step);
    return true;
  }

  bool step() {
    allocator_.reset_peak_reserved();
    const auto end = static_cast<std::uint32_t>(question_.step.timeline.events.size());
    if (!play(question_.step, question_.step.before_step, question_.peak_event, false)) return false;
    out_.idle_bytes = allocator_.idle_bytes();
    out_.block_bytes = allocator_.allocated_bytes();
    if (!play(question_.step, question_.peak_event, end, false)) return false;
    out_.bytes = allocator_.peak_reserved_bytes();
    return true;
  }

  bool play(const TrainRun& run, std::uint32_t from, std::uint32_t to, bool first) {
    const std::uint32_t reached = replay_.run(run.timeline, from, to);
    if (reached == to) return true;
    out_.full = FullCard{first, reached, allocator_.last_failure()};
    return false;
  }

  const ReserveQuestion& question_;
  memory::CachingAllocator allocator_;
  memory::TimelineReplay replay_;
  Reserved out_;
};

}  // namespace

Reserved reserve(const ReserveQuestion& question) { return Program(question).run(); }

}  // namespace ullage::engines::pytorch
