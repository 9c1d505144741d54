#include <array>
#include <span>

#include "base/json.h"
#include "memory/timeline_replay.h"
#include "report/timeline_file.h"

namespace ullage::report {
namespace {

using engines::pytorch::ReserveQuestion;
using engines::pytorch::TrainRun;
using memory::EventKind;
using memory::Timeline;

constexpr int kProcess = 0;
constexpr int kPhases = 1;
constexpr int kOperators = 2;

std::string_view name_of(memory::Phase phase) {
  static constexpr std::array<std::string_view, 7> kNames{"set-up",    "forward",       "backward", "recompute",
                                                          "optimizer", "communication", "other"};
  return kNames[static_cast<std::size_t>(phase)];
}

class TraceWriter {
 public:
  explicit TraceWriter(const ReserveQuestion& program)
      : program_(program), allocator_(program.settings, program.card), replay_(allocator_) {}

  std::string write() {
    name_rows();
    set_up();
    play();
    write_operators();
    const Json out = {
        {"displayTimeUnit", "ns"},
        {"otherData", {{"producer", "ullage"}, {"time", "one microsecond an event: no time is predicted"}}},
        {"traceEvents", std::move(events_)}};
    return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  void name_rows() {
    events_.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", kProcess}, {"args", {{"name", "GPU memory"}}}});
    for (const auto& [row, name] : {std::pair{kPhases, "phases"}, std::pair{kOperators, "operators"}}) {
      events_.push_back(
          {{"ph", "M"}, {"name", "thread_name"}, {"pid", kProcess}, {"tid", row}, {"args", {{"name", name}}}});
    }
  }

  // What came before the step, and what is alive when it begins.
  void set_up() {
    const TrainRun& step = program_.step;
    if (program_.first != nullptr) {
      const Timeline& first = program_.first->timeline;
      replay_.run(first, 0, static_cast<std::uint32_t>(first.events.size()));
      replay_.carry_over(step.timeline, step.before_step);
    } else {
      replay_.run(step.timeline, 0, step.before_step);
    }
    component_.resize(step.timeline.blocks.size());
    for (std::uint32_t i = 0; i < step.before_step; ++i) count(step.timeline.events[i]);
    write_counters(0);
  }

  void count(const memory::Event& event) {
    if (event.space != memory::Space::device) return;
    const std::int64_t bytes = program_.step.timeline.block_bytes(event.block);
    if (event.kind == EventKind::free || event.kind == EventKind::retag) of(component_[event.block]) -= bytes;
    if (event.kind == EventKind::alloc || event.kind == EventKind::retag) {
      component_[event.block] = event.component;
      of(event.component) += bytes;
    }
  }

  std::int64_t& of(memory::Component component) { return by_component_[static_cast<std::size_t>(component)]; }

  void write_counters(std::int64_t time) {
    Json bytes = Json::object();
    for (std::size_t i = 0; i < memory::kComponents; ++i) {
      seen_[i] = seen_[i] || by_component_[i] != 0;
      if (seen_[i]) bytes[std::string(memory::kComponentNames[i])] = by_component_[i];
    }
    events_.push_back(
        {{"ph", "C"}, {"name", "allocated bytes"}, {"pid", kProcess}, {"ts", time}, {"args", std::move(bytes)}});
    if (allocator_.reserved_bytes() == reserved_) return;
    reserved_ = allocator_.reserved_bytes();
    events_.push_back({{"ph", "C"},
                       {"name", "reserved bytes"},
                       {"pid", kProcess},
                       {"ts", time},
                       {"args", {{"reserved", reserved_}}}});
  }

  void play() {
    const Timeline& timeline = program_.step.timeline;
    const auto end = static_cast<std::uint32_t>(timeline.events.size());
    for (std::uint32_t i = program_.step.before_step; i < end; ++i) {
      if (replay_.run(timeline, i, i + 1) == i) return;  // the card is full
      count(timeline.events[i]);
      write_counters(time_of(i + 1));
    }
  }

  std::int64_t time_of(std::uint32_t event) const {
    return static_cast<std::int64_t>(event) - static_cast<std::int64_t>(program_.step.before_step);
  }

  void slice(int row, std::string_view name, std::int64_t from, std::int64_t to, Json args) {
    events_.push_back({{"ph", "X"},
                       {"name", name},
                       {"pid", kProcess},
                       {"tid", row},
                       {"ts", from},
                       {"dur", to - from},
                       {"args", std::move(args)}});
  }

  void write_operators() {
    const Timeline& timeline = program_.step.timeline;
    const auto end = static_cast<std::uint32_t>(timeline.events.size());
    std::int64_t phase_from = 0;
    memory::Phase phase = memory::Phase::setup;
    for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
      const memory::OpRecord& op = timeline.ops[i];
      if (op.first_event < program_.step.before_step) continue;
      const std::uint32_t next = i + 1 < timeline.ops.size() ? timeline.ops[i + 1].first_event : end;
      if (op.phase != phase) {
        if (phase != memory::Phase::setup)
          slice(kPhases, name_of(phase), phase_from, time_of(op.first_event), Json::object());
        phase = op.phase;
        phase_from = time_of(op.first_event);
      }
      Json args = {{"module", timeline.names[op.module]}, {"flops", op.flops}, {"bytes_moved", op.bytes_moved}};
      if (op.layer != memory::kNoLayer) args["layer"] = op.layer;
      slice(kOperators, timeline.names[op.name], time_of(op.first_event), time_of(next), std::move(args));
    }
    if (phase != memory::Phase::setup) slice(kPhases, name_of(phase), phase_from, time_of(end), Json::object());
  }

  const ReserveQuestion& program_;
  memory::CachingAllocator allocator_;
  memory::TimelineReplay replay_;
  Json events_ = Json::array();
  std::vector<memory::Component> component_;
  memory::ByComponent by_component_{};
  std::array<bool, memory::kComponents> seen_{};
  std::int64_t reserved_ = -1;
};

}  // namespace

std::string trace_json(const ReserveQuestion& program) { return TraceWriter(program).write(); }

}  // namespace ullage::report
