#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "memory/timeline_replay.h"
#include "report/pickle.h"
#include "report/timeline_file.h"

namespace ullage::report {
namespace {

using engines::pytorch::ReserveQuestion;
using engines::pytorch::TrainRun;
using memory::BlockView;
using memory::CachingAllocator;
using memory::EventKind;
using memory::Handle;
using memory::kNone;
using memory::SegmentEvent;
using memory::Timeline;

std::string_view name_of(memory::Phase phase) {
  static constexpr std::array<std::string_view, 7> kNames{"set-up",    "forward",       "backward", "recompute",
                                                          "optimizer", "communication", "other"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string_view action_of(EventKind kind) {
  switch (kind) {
    case EventKind::segment_alloc: return "segment_alloc";
    case EventKind::segment_free: return "segment_free";
    case EventKind::segment_map: return "segment_map";
    default: return "segment_unmap";
  }
}

// Who made a block: written once, referred to afterwards.
struct Maker {
  std::string_view op;
  std::string_view module;
  std::int16_t layer = memory::kNoLayer;
  memory::Phase phase = memory::Phase::setup;
  // By hand: a string_view of older libraries has no three-way comparison.
  bool operator<(const Maker& other) const {
    return std::tie(op, module, layer, phase) < std::tie(other.op, other.module, other.layer, other.phase);
  }
};

class SnapshotWriter {
 public:
  explicit SnapshotWriter(const ReserveQuestion& program)
      : program_(program), allocator_(program.settings, program.card), replay_(allocator_) {}

  std::string write() {
    out_.begin_dict();
    out_.text("device_traces");
    out_.begin_list();
    out_.begin_list();
    play_program();
    out_.end_list();
    out_.end_list();
    out_.text("segments");
    write_segments();
    out_.text("allocator_settings");
    write_settings();
    out_.text("external_annotations");
    out_.begin_list();
    out_.end_list();
    out_.text("ullage");
    out_.text("predicted; one microsecond an event");
    out_.end_dict();
    return out_.take();
  }

 private:
  void play_program() {
    const TrainRun& step = program_.step;
    if (program_.first != nullptr) {
      play(program_.first->timeline, 0, end_of(program_.first->timeline));
      // What lives on is the same memory under the other timeline's numbers.
      replay_.carry_over(step.timeline, step.before_step);
      play(step.timeline, step.before_step, end_of(step.timeline));
    } else {
      play(step.timeline, 0, end_of(step.timeline));
    }
  }

  static std::uint32_t end_of(const Timeline& timeline) { return static_cast<std::uint32_t>(timeline.events.size()); }

  void play(const Timeline& timeline, std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t i = from; i < to; ++i) {
      const memory::Event& event = timeline.events[i];
      const bool moves = event.kind == EventKind::alloc || event.kind == EventKind::free;
      if (!moves || event.space != memory::Space::device) continue;
      const std::size_t segments = allocator_.segment_events().size();
      const Handle freed = event.kind == EventKind::free ? replay_.handle(event.block) : kNone;
      if (freed != kNone) write_free(freed);
      if (replay_.run(timeline, i, i + 1) == i) return;  // the card is full
      write_segment_events(segments);
      if (freed == kNone) write_alloc(timeline, event.block, replay_.handle(event.block));
    }
  }

  void begin_entry(std::string_view action, std::uint64_t address, std::int64_t bytes) {
    out_.begin_dict();
    out_.text("action");
    out_.text(action);
    out_.text("addr");
    out_.integer(static_cast<std::int64_t>(address));
    out_.text("size");
    out_.integer(bytes);
    out_.text("stream");
    out_.integer(0);
    out_.text("time_us");
    out_.integer(clock_++);
  }

  void write_segment_events(std::size_t from) {
    const std::vector<SegmentEvent>& events = allocator_.segment_events();
    for (std::size_t i = from; i < events.size(); ++i) {
      begin_entry(action_of(events[i].kind), events[i].address, events[i].bytes);
      out_.text("frames");
      out_.begin_list();
      out_.end_list();
      out_.end_dict();
    }
  }

  void write_alloc(const Timeline& timeline, memory::BlockId id, Handle handle) {
    const memory::Block& block = timeline.blocks[id];
    Maker maker{timeline.names[block.label], {}, block.layer, memory::Phase::setup};
    if (block.op != kNone) {
      const memory::OpRecord& op = timeline.ops[block.op];
      maker = {timeline.names[op.name], timeline.names[op.module], op.layer, op.phase};
    }
    begin_entry("alloc", allocator_.block_address(handle), block.requested_bytes);
    out_.text("frames");
    frames(maker);
    out_.end_dict();
    if (handle >= makers_.size()) makers_.resize(handle + 1);
    makers_[handle] = maker;
  }

  void write_free(Handle handle) {
    for (const std::string_view action : {"free_requested", "free_completed"}) {
      begin_entry(action, allocator_.block_address(handle), allocator_.requested_bytes(handle));
      out_.text("frames");
      frames(handle < makers_.size() ? makers_[handle] : Maker{});
      out_.end_dict();
    }
  }

  void frame(std::string_view name, std::string_view file, std::int64_t line) {
    out_.begin_dict();
    out_.text("name");
    out_.text(name);
    out_.text("filename");
    out_.text(file);
    out_.text("line");
    out_.integer(line);
    out_.end_dict();
  }

  // Innermost first, as PyTorch has them: the operator in its module, the layer's number for a line; then the phase.
  void frames(const Maker& maker) {
    if (const auto found = frames_.find(maker); found != frames_.end()) return out_.recall(found->second);
    out_.begin_list();
    frame(maker.op, maker.module, std::max<std::int64_t>(maker.layer, 0));
    frame(name_of(maker.phase), maker.layer == memory::kNoLayer ? "step" : "layer " + std::to_string(maker.layer), 0);
    out_.end_list();
    frames_.emplace(maker, out_.remember());
  }

  void write_segments() {
    out_.begin_list();
    const std::vector<BlockView> blocks = allocator_.blocks();
    for (std::size_t i = 0; i < blocks.size();) {
      std::size_t end = i + 1;
      while (end < blocks.size() && blocks[end].segment == blocks[i].segment && blocks[end].mapped == blocks[i].mapped)
        ++end;
      if (blocks[i].mapped) write_segment(std::span(blocks).subspan(i, end - i));
      i = end;
    }
    out_.end_list();
  }

  void number(std::string_view key, std::int64_t value) {
    out_.text(key);
    out_.integer(value);
  }

  void write_segment(std::span<const BlockView> blocks) {
    std::int64_t total = 0;
    std::int64_t used = 0;
    std::int64_t requested = 0;
    for (const BlockView& block : blocks) {
      total += block.bytes;
      used += block.in_use ? block.bytes : 0;
      requested += block.in_use ? block.requested_bytes : 0;
    }
    out_.begin_dict();
    number("device", 0);
    number("address", static_cast<std::int64_t>(blocks[0].address));
    number("total_size", total);
    number("allocated_size", used);
    number("active_size", used);
    number("requested_size", requested);
    number("stream", blocks[0].stream);
    out_.text("segment_type");
    out_.text(blocks[0].small ? "small" : "large");
    out_.text("segment_pool_id");
    out_.integer(0);
    out_.integer(blocks[0].pool);
    out_.pair();
    out_.text("is_expandable");
    out_.boolean(blocks[0].expandable);
    out_.text("frames");
    out_.begin_list();
    out_.end_list();
    out_.text("blocks");
    out_.begin_list();
    for (const BlockView& block : blocks) write_block(block);
    out_.end_list();
    out_.end_dict();
  }

  void write_block(const BlockView& block) {
    out_.begin_dict();
    number("address", static_cast<std::int64_t>(block.address));
    number("size", block.bytes);
    number("requested_size", block.requested_bytes);
    out_.text("state");
    out_.text(block.in_use ? "active_allocated" : "inactive");
    out_.text("frames");
    if (block.in_use && block.handle < makers_.size()) {
      frames(makers_[block.handle]);
    } else {
      out_.begin_list();
      out_.end_list();
    }
    out_.end_dict();
  }

  void write_settings() {
    const memory::AllocatorSettings& s = program_.settings;
    out_.begin_dict();
    out_.text("PYTORCH_CUDA_ALLOC_CONF");
    out_.text(memory::to_string(s));
    number("max_split_size", s.max_split_bytes == memory::kUnlimitedBytes ? -1 : s.max_split_bytes);
    out_.text("garbage_collection_threshold");
    out_.real(s.garbage_collection_threshold);
    out_.text("expandable_segments");
    out_.boolean(s.expandable_segments);
    out_.end_dict();
  }

  const ReserveQuestion& program_;
  CachingAllocator allocator_;
  memory::TimelineReplay replay_;
  Pickle out_;
  std::int64_t clock_ = 0;
  std::vector<Maker> makers_;  // by handle
  std::map<Maker, std::uint32_t> frames_;
};

}  // namespace

std::string snapshot_pickle(const ReserveQuestion& program) { return SnapshotWriter(program).write(); }

}  // namespace ullage::report
