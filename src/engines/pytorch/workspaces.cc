#include "engines/pytorch/workspaces.h"

#include <algorithm>
#include <array>

namespace ullage::engines::pytorch {
namespace {

using memory::Phase;
using memory::Timeline;

bool multiplies(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames{"mm", "bmm", "addmm", "baddbmm"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// The first operator of a thread that calls cuBLAS; kNone if none does. Autograd's thread runs layers again, too.
memory::OpId first_product(const Timeline& timeline, bool of_autograd) {
  std::vector<bool> product(timeline.names.size(), false);
  for (NameId id = 0; id < product.size(); ++id) product[id] = multiplies(timeline.names[id]);
  for (memory::OpId i = 0; i < timeline.ops.size(); ++i) {
    const memory::OpRecord& op = timeline.ops[i];
    const bool backward = op.phase == Phase::backward || op.phase == Phase::recompute;
    if (product[op.name] && op.phase != Phase::setup && backward == of_autograd) return i;
  }
  return memory::kNone;
}

void insert(TrainRun& run, std::uint32_t at, memory::OpId op, std::int64_t bytes) {
  Timeline& timeline = run.timeline;
  const auto block = static_cast<memory::BlockId>(timeline.blocks.size());
  timeline.blocks.push_back({bytes, op, timeline.names.intern("cublas_workspace"), memory::kNoLayer});
  timeline.events.insert(timeline.events.begin() + at,
                         {block, memory::EventKind::alloc, memory::Component::workspace, memory::Space::device, 0});
  // What begins at `at` begins behind it now, but for the operator that makes it.
  for (memory::OpId i = 0; i < timeline.ops.size(); ++i) {
    std::uint32_t& first = timeline.ops[i].first_event;
    if (first > at || (first == at && i > op)) ++first;
  }
  for (memory::Mark& mark : timeline.marks) mark.event += mark.event > at ? 1 : 0;
  for (std::uint32_t* moment : {&run.after_forward, &run.after_backward, &run.after_step}) *moment += *moment > at;
}

}  // namespace

void add_workspaces(TrainRun& run, Step step, std::int64_t bytes) {
  for (const bool of_autograd : {false, true}) {
    const memory::OpId op = first_product(run.timeline, of_autograd);
    if (op == memory::kNone) continue;
    if (step != Step::steady) {
      insert(run, run.timeline.ops[op].first_event, op, bytes);
      continue;
    }
    // The first step made it: it is there before the step that is meant.
    insert(run, run.before_step, memory::kNone, bytes);
    ++run.before_step;
  }
}

}  // namespace ullage::engines::pytorch
