#include "engines/pytorch/splice.h"

#include <algorithm>
#include <array>

namespace ullage::engines::pytorch {
namespace {

using Section = tensor::Context::Section;
using memory::Block;
using memory::Event;
using memory::OpRecord;
using memory::Timeline;

// What is repeated is a unit: as many layers as it takes until their kinds repeat. So many units, and the layers that
// are left over, are simulated, and more are put in between unit `left` and the next: far enough from both ends, where
// layers differ by what lies beside them, and with neighbours on both sides to compare with. Where a part of the model
// is frozen the graph may begin within the first layer, so that the second differs, too.
struct Cut {
  std::int64_t simulated = 6;
  std::int16_t left = 2;
  std::int16_t unit_layers = 1;
  std::int16_t right() const { return static_cast<std::int16_t>(left + 1); }
};

Cut cut_of(const model::TuningPlan& plan, std::int64_t unit_layers) {
  const auto layers = static_cast<std::int16_t>(unit_layers);
  return plan.all_train ? Cut{6, 2, layers} : Cut{7, 3, layers};
}

// A section's rows in the three tables.
struct Stretch {
  Section from;
  Section to;
  std::uint32_t events() const { return to.event - from.event; }
  std::uint32_t ops() const { return to.op - from.op; }
  std::uint32_t blocks() const { return to.block - from.block; }
};

// The sections with the number of the unit in place of the layer's, those of one unit as one.
std::vector<Section> sections_of_units(const std::vector<Section>& sections, std::int16_t unit_layers) {
  std::vector<Section> out;
  for (Section section : sections) {
    if (section.layer != memory::kNoLayer) section.layer = static_cast<std::int16_t>(section.layer / unit_layers);
    if (out.empty() || out.back().layer != section.layer) out.push_back(section);
  }
  return out;
}

// A place where units go in: between `pattern` and `after`; `before` precedes the pattern. `step` is the layers from
// one to the next, negative in the backward pass.
struct Junction {
  Stretch before;
  Stretch pattern;
  Stretch after;
  std::int16_t step = 1;
};

bool same_size(const Stretch& a, const Stretch& b) {
  return a.events() == b.events() && a.ops() == b.ops() && a.blocks() == b.blocks();
}

// Whether rows of `a`, `b` and `c` differ by steps: references by a constant amount, layers by those of a unit, the
// rest not at all.
class Likeness {
 public:
  Likeness(const Timeline& timeline, const Stretch& a, const Stretch& b, const Stretch& c, std::int16_t step)
      : timeline_(timeline), a_(a.from), b_(b.from), c_(c.from), size_(a), step_(step) {}

  bool holds() const { return events() && ops() && blocks(); }

 private:
  static bool linear(std::uint32_t a, std::uint32_t b, std::uint32_t c) { return b - a == c - b; }
  // Rows outside of layers keep saying so.
  bool layers(std::int16_t a, std::int16_t b, std::int16_t c) const {
    return a == memory::kNoLayer ? b == a && c == a : b == a + step_ && c == b + step_;
  }

  bool events() const {
    for (std::uint32_t i = 0; i < size_.events(); ++i) {
      Event a = timeline_.events[a_.event + i];
      Event b = timeline_.events[b_.event + i];
      Event c = timeline_.events[c_.event + i];
      if (!linear(a.block, b.block, c.block)) return false;
      b.block = c.block = a.block;
      if (!(a == b && a == c)) return false;
    }
    return true;
  }

  bool ops() const {
    for (std::uint32_t i = 0; i < size_.ops(); ++i) {
      const OpRecord& a = timeline_.ops[a_.op + i];
      OpRecord b = timeline_.ops[b_.op + i];
      OpRecord c = timeline_.ops[c_.op + i];
      if (!layers(a.layer, b.layer, c.layer)) return false;
      if (!linear(a.first_event, b.first_event, c.first_event)) return false;
      b.layer = c.layer = a.layer;
      b.first_event = c.first_event = a.first_event;
      if (!(a == b && a == c)) return false;
    }
    return true;
  }

  bool blocks() const {
    for (std::uint32_t i = 0; i < size_.blocks(); ++i) {
      const Block& a = timeline_.blocks[a_.block + i];
      Block b = timeline_.blocks[b_.block + i];
      Block c = timeline_.blocks[c_.block + i];
      if (!layers(a.layer, b.layer, c.layer) || !linear(a.op, b.op, c.op)) return false;
      b.layer = c.layer = a.layer;
      b.op = c.op = a.op;
      if (!(a == b && a == c)) return false;
    }
    return true;
  }

  const Timeline& timeline_;
  Section a_, b_, c_;
  Stretch size_;
  std::int16_t step_;
};

// Every stretch in which the middle units follow each other, with the proof that they are alike; nothing if one is
// not.
std::optional<std::vector<Junction>> find_junctions(const RecordedStep& step, Cut cut) {
  std::vector<Junction> found;
  const std::vector<Section> s = sections_of_units(step.sections, cut.unit_layers);
  for (std::size_t i = 1; i + 2 < s.size(); ++i) {
    const bool ascending = s[i].layer == cut.left && s[i + 1].layer == cut.right();
    const bool descending = s[i].layer == cut.right() && s[i + 1].layer == cut.left;
    if (!ascending && !descending) continue;
    const auto direction = static_cast<std::int16_t>(ascending ? 1 : -1);
    if (s[i - 1].layer != s[i].layer - direction || s[i + 2].layer != s[i + 1].layer + direction) return std::nullopt;
    const Stretch before{s[i - 1], s[i]};
    const Stretch pattern{s[i], s[i + 1]};
    const Stretch after{s[i + 1], s[i + 2]};
    if (!same_size(before, pattern) || !same_size(pattern, after)) return std::nullopt;
    const auto layers = static_cast<std::int16_t>(direction * cut.unit_layers);
    if (!Likeness(step.timeline, before, pattern, after, layers).holds()) return std::nullopt;
    found.push_back({before, pattern, after, layers});
  }
  if (found.empty()) return std::nullopt;
  return found;
}

// Where rows of one table end up: everything from a junction on moves by the rows put in there.
class Shift {
 public:
  Shift(const std::vector<Junction>& junctions, std::uint32_t Section::*column, std::uint32_t copies,
        std::size_t rows) {
    // One row more: a reference may point behind the last.
    moved_.reserve(rows + 1);
    for (const Junction& junction : junctions) {
      move_to(junction.pattern.to.*column);
      total_ += copies * (junction.pattern.to.*column - junction.pattern.from.*column);
    }
    move_to(rows + 1);
  }

  std::uint32_t operator()(std::uint32_t row) const { return moved_[row]; }
  std::uint32_t total() const { return total_; }

 private:
  void move_to(std::size_t end) {
    for (auto row = static_cast<std::uint32_t>(moved_.size()); row < end; ++row) moved_.push_back(row + total_);
  }

  std::vector<std::uint32_t> moved_;
  std::uint32_t total_ = 0;
};

class Splicer {
 public:
  Splicer(RecordedStep& step, const std::vector<Junction>& junctions, Cut cut, std::uint32_t copies,
          tensor::Workspace& workspace)
      : step_(step),
        junctions_(junctions),
        copies_(copies),
        moved_from_(static_cast<std::int16_t>(cut.right() * cut.unit_layers)),
        moved_by_(static_cast<std::int16_t>(static_cast<std::int16_t>(copies) * cut.unit_layers)),
        event_(junctions, &Section::event, copies, step.timeline.events.size()),
        op_(junctions, &Section::op, copies, step.timeline.ops.size()),
        block_(junctions, &Section::block, copies, step.timeline.blocks.size()),
        workspace_(workspace),
        out_(workspace.take()) {}

  // `unit_parameters`: parameters of one unit that train.
  TrainRun run(std::int64_t unit_parameters) {
    stretch_stacked_norms(unit_parameters);
    Timeline& in = step_.timeline;
    out_.events.reserve(in.events.size() + event_.total());
    out_.ops.reserve(in.ops.size() + op_.total());
    out_.blocks.reserve(in.blocks.size() + block_.total());
    Section done{};
    for (const Junction& junction : junctions_) {
      copy_through(done, junction.pattern.from);
      repeat(junction);
      done = junction.after.to;
    }
    copy_through(done, {static_cast<std::uint32_t>(in.events.size()), static_cast<std::uint32_t>(in.ops.size()),
                        static_cast<std::uint32_t>(in.blocks.size()), memory::kNoLayer});
    for (memory::Mark& mark : in.marks) mark.event = event_(mark.event);
    in.events.swap(out_.events);
    in.ops.swap(out_.ops);
    in.blocks.swap(out_.blocks);
    workspace_.give_back(std::move(out_));
    for (std::uint32_t* moment : {&step_.moments.before_step, &step_.moments.after_forward,
                                  &step_.moments.after_backward, &step_.moments.after_step}) {
      *moment = event_(*moment);
    }
    TrainRun out = whole(std::move(step_));
    out.spliced = true;
    return out;
  }

 private:
  // Done before the rows are copied: block and operator lie outside of the layers.
  void stretch_stacked_norms(std::int64_t unit_parameters) {
    if (step_.stacked_norms == memory::kNone) return;
    Block& block = step_.timeline.blocks[step_.stacked_norms];
    const std::int64_t more = static_cast<std::int64_t>(copies_) * unit_parameters * step_.norm_bytes;
    block.requested_bytes += more;
    step_.timeline.ops[block.op].bytes_moved += more;
  }

  std::int16_t shifted_layer(std::int16_t layer) const {
    return layer < moved_from_ ? layer : static_cast<std::int16_t>(layer + moved_by_);
  }

  Event shifted(Event event) const {
    event.block = block_(event.block);
    return event;
  }
  OpRecord shifted(OpRecord op) const {
    op.layer = shifted_layer(op.layer);
    op.first_event = event_(op.first_event);
    return op;
  }
  Block shifted(Block block) const {
    block.layer = shifted_layer(block.layer);
    if (block.op != memory::kNone) block.op = op_(block.op);
    return block;
  }

  void copy_through(const Section& from, const Section& to) {
    const Timeline& in = step_.timeline;
    for (std::uint32_t i = from.event; i < to.event; ++i) out_.events.push_back(shifted(in.events[i]));
    for (std::uint32_t i = from.op; i < to.op; ++i) out_.ops.push_back(shifted(in.ops[i]));
    for (std::uint32_t i = from.block; i < to.block; ++i) out_.blocks.push_back(shifted(in.blocks[i]));
  }

  // The pattern, its copies, and the section behind them: the rows of the layer before, every reference moved on once
  // more for each unit by what the pattern's moves from the unit before. References may cross the junction (a layer
  // frees its predecessor's output), so they are reckoned from `before`, which lies with all it refers to on one side.
  void repeat(const Junction& junction) {
    const std::uint32_t times = copies_ + 2;
    repeat_events(junction, times);
    repeat_ops(junction, times);
    repeat_blocks(junction, times);
  }

  void repeat_events(const Junction& junction, std::uint32_t times) {
    const std::uint32_t size = junction.pattern.events();
    const Event* before = &step_.timeline.events[junction.before.from.event];
    const Event* pattern = &step_.timeline.events[junction.pattern.from.event];
    std::vector<Event> rows;
    std::vector<std::uint32_t> distances;
    for (std::uint32_t i = 0; i < size; ++i) {
      rows.push_back(shifted(before[i]));
      distances.push_back(pattern[i].block - before[i].block);
    }
    for (std::uint32_t copy = 0; copy < times; ++copy) {
      for (std::uint32_t i = 0; i < size; ++i) rows[i].block += distances[i];
      out_.events.insert(out_.events.end(), rows.begin(), rows.end());
    }
  }

  void repeat_ops(const Junction& junction, std::uint32_t times) {
    const OpRecord* before = &step_.timeline.ops[junction.before.from.op];
    std::vector<OpRecord> rows;
    for (std::uint32_t i = 0; i < junction.pattern.ops(); ++i) rows.push_back(shifted(before[i]));
    for (std::uint32_t copy = 0; copy < times; ++copy) {
      for (OpRecord& row : rows) {
        move(row.layer, junction.step);
        row.first_event += junction.pattern.events();
      }
      out_.ops.insert(out_.ops.end(), rows.begin(), rows.end());
    }
  }

  void repeat_blocks(const Junction& junction, std::uint32_t times) {
    const Block* before = &step_.timeline.blocks[junction.before.from.block];
    const Block* pattern = &step_.timeline.blocks[junction.pattern.from.block];
    std::vector<Block> rows;
    for (std::uint32_t i = 0; i < junction.pattern.blocks(); ++i) rows.push_back(shifted(before[i]));
    for (std::uint32_t copy = 0; copy < times; ++copy) {
      for (std::uint32_t i = 0; i < rows.size(); ++i) {
        move(rows[i].layer, junction.step);
        rows[i].op += pattern[i].op - before[i].op;
      }
      out_.blocks.insert(out_.blocks.end(), rows.begin(), rows.end());
    }
  }

  static void move(std::int16_t& layer, std::int16_t step) {
    if (layer != memory::kNoLayer) layer = static_cast<std::int16_t>(layer + step);
  }

  RecordedStep& step_;
  const std::vector<Junction>& junctions_;
  std::uint32_t copies_;
  std::int16_t moved_from_;  // the first layer behind what is put in,
  std::int16_t moved_by_;    // and by how many it and those behind it move on
  Shift event_, op_, block_;
  tensor::Workspace& workspace_;
  Timeline out_;  // the tables being filled
};

}  // namespace

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

std::optional<TrainRun> run_spliced(const model::Architecture& architecture, const model::TuningPlan& plan,
                                    const std::function<RecordedStep(const model::Architecture&)>& run,
                                    tensor::Workspace& workspace) {
  const std::int64_t unit_layers = architecture.period();
  if (unit_layers == 0) return std::nullopt;
  const Cut cut = cut_of(plan, unit_layers);
  const std::int64_t units = architecture.layer_count() / unit_layers;
  if (units <= cut.simulated) return std::nullopt;
  const auto copies = static_cast<std::uint32_t>(units - cut.simulated);
  model::Architecture few = architecture;
  few.layers.resize(architecture.layers.size() - copies * static_cast<std::size_t>(unit_layers));
  RecordedStep step = run(few);
  const auto junctions = find_junctions(step, cut);
  if (!junctions) {
    workspace.give_back(std::move(step.timeline));
    return std::nullopt;
  }
  std::int64_t parameters = 0;
  for (std::int64_t i = 0; i < unit_layers; ++i) {
    parameters += model::trained_tensors(plan.kinds[architecture.layers[static_cast<std::size_t>(i)]]);
  }
  return Splicer(step, *junctions, cut, copies, workspace).run(parameters);
}

}  // namespace ullage::engines::pytorch
