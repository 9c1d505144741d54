#include "report/page_timeline.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ullage::report {
namespace {

std::string base64(const std::string& bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// One column of numbers of `width` bytes.
class Column {
 public:
  explicit Column(std::size_t width) : width_(width) {}
  void add(std::uint64_t value) {
    for (std::size_t i = 0; i < width_; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xFF);
  }
  std::string text() const { return base64(bytes_); }

 private:
  std::size_t width_;
  std::string bytes_;
};

bool is_shown(const memory::Event& event) {
  return event.kind <= memory::EventKind::retag && event.space == memory::Space::device;
}

// Sizes in units that fit 32 bits: the granularity, or as many of them as it takes.
std::int64_t unit_of(const memory::Timeline& timeline) {
  std::int64_t largest = 0;
  for (memory::BlockId id = 0; id < timeline.blocks.size(); ++id) largest = std::max(largest, timeline.block_bytes(id));
  std::int64_t unit = std::max<std::int64_t>(timeline.granularity_bytes, 1);
  while (largest / unit > std::numeric_limits<std::uint32_t>::max()) unit *= 2;
  return unit;
}

void add_events(Json& out, const memory::Timeline& timeline, std::vector<std::uint32_t>& shown_before) {
  Column block(4);
  Column kind(1);
  Column component(1);
  std::uint32_t shown = 0;
  for (const memory::Event& event : timeline.events) {
    shown_before.push_back(shown);
    if (!is_shown(event)) continue;
    block.add(event.block);
    kind.add(static_cast<std::uint64_t>(event.kind));
    component.add(static_cast<std::uint64_t>(event.component));
    ++shown;
  }
  shown_before.push_back(shown);
  out["event_block"] = block.text();
  out["event_kind"] = kind.text();
  out["event_component"] = component.text();
}

void add_blocks(Json& out, const memory::Timeline& timeline) {
  const std::int64_t unit = unit_of(timeline);
  Column units(4);
  Column op(4);
  Column layer(2);
  Column label(2);
  for (memory::BlockId id = 0; id < timeline.blocks.size(); ++id) {
    units.add(static_cast<std::uint64_t>(timeline.block_bytes(id) / unit));
    op.add(timeline.blocks[id].op);
    layer.add(static_cast<std::uint16_t>(timeline.blocks[id].layer));
    label.add(timeline.blocks[id].label);
  }
  out["unit_bytes"] = unit;
  out["block_units"] = units.text();
  out["block_op"] = op.text();
  out["block_layer"] = layer.text();
  out["block_label"] = label.text();
}

void add_ops(Json& out, const memory::Timeline& timeline) {
  Column name(2);
  Column module(2);
  Column phase(1);
  for (const memory::OpRecord& op : timeline.ops) {
    name.add(op.name);
    module.add(op.module);
    phase.add(static_cast<std::uint64_t>(op.phase));
  }
  out["op_name"] = name.text();
  out["op_module"] = module.text();
  out["op_phase"] = phase.text();
}

}  // namespace

Json page_timeline(const memory::Timeline& timeline) {
  Json out = Json::object();
  std::vector<std::uint32_t> shown_before;  // by event
  add_events(out, timeline, shown_before);
  add_blocks(out, timeline);
  add_ops(out, timeline);
  out["names"] = Json::array();
  for (std::size_t id = 0; id < timeline.names.size(); ++id)
    out["names"].push_back(timeline.names[static_cast<NameId>(id)]);
  out["marks"] = Json::array();
  for (const memory::Mark& mark : timeline.marks)
    out["marks"].push_back({{"name", timeline.names[mark.name]}, {"event", shown_before[mark.event]}});
  return out;
}

}  // namespace ullage::report
