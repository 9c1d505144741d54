#include "memory/timeline.h"

#include <string_view>

namespace ullage::memory {
namespace {

class Writer {
 public:
  void number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  void text(std::string_view value) {
    number(value.size(), 4);
    out_.insert(out_.end(), value.begin(), value.end());
  }
  std::vector<std::uint8_t> take() { return std::move(out_); }

 private:
  std::vector<std::uint8_t> out_;
};

}  // namespace

std::vector<std::uint8_t> serialise(const Timeline& timeline) {
  Writer out;
  out.number(static_cast<std::uint64_t>(timeline.granularity_bytes), 8);
  out.number(timeline.blocks.size(), 8);
  for (const Block& block : timeline.blocks) {
    out.number(static_cast<std::uint64_t>(block.requested_bytes), 8);
    out.number(block.op, 4);
    out.number(static_cast<std::uint16_t>(block.layer), 2);
    out.text(timeline.names[block.label]);
  }
  out.number(timeline.events.size(), 8);
  for (const Event& event : timeline.events) {
    out.number(event.block, 4);
    out.number(static_cast<std::uint64_t>(event.kind), 1);
    out.number(static_cast<std::uint64_t>(event.component), 1);
    out.number(static_cast<std::uint64_t>(event.space), 1);
    out.number(event.stream, 1);
  }
  out.number(timeline.ops.size(), 8);
  for (const OpRecord& op : timeline.ops) {
    out.number(static_cast<std::uint64_t>(op.flops), 8);
    out.number(static_cast<std::uint64_t>(op.bytes_moved), 8);
    out.number(op.first_event, 4);
    out.number(static_cast<std::uint16_t>(op.layer), 2);
    out.number(static_cast<std::uint64_t>(op.phase), 1);
    out.text(timeline.names[op.name]);
    out.text(timeline.names[op.module]);
  }
  out.number(timeline.marks.size(), 8);
  for (const Mark& mark : timeline.marks) {
    out.number(mark.event, 4);
    out.text(timeline.names[mark.name]);
  }
  return out.take();
}

bool identical(const Timeline& a, const Timeline& b) { return serialise(a) == serialise(b); }

}  // namespace ullage::memory
