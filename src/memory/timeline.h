// A timeline of allocations with names: what a predictor writes and what a reader of evidence writes.
//
// A Timeline is four tables. `blocks` holds one row for each allocation, from its birth to its death; `events` is the
// order in which they were born, died or changed their purpose; `ops` are the operators that made them, with the work
// they did; `marks` are moments with a name (phases). Rows refer to each other by index, texts by NameId, so that a
// training step of an 80-layer model is about a megabyte and is written in microseconds. Times are optional.
//
// Everything after a timeline (peak, attribution, allocator replay, diff, chart) reads only these tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/names.h"
#include "memory/component.h"

namespace ullage::memory {

using BlockId = std::uint32_t;
using OpId = std::uint32_t;

inline constexpr std::uint32_t kNone = 0xFFFFFFFF;
inline constexpr std::int16_t kNoLayer = -1;

enum class EventKind : std::uint8_t {
  alloc,
  free,            // the block may be given out again from here on
  retag,           // same memory, other purpose: a temporary was saved for backward, a gradient became .grad
  free_requested,  // freed by the program while another stream still uses it; `free` follows
  segment_alloc,   // the allocator took memory from the driver (cudaMalloc); `block` indexes `segments`
  segment_free,
  segment_map,
  segment_unmap,
  out_of_memory,
};

// Where the memory is.
enum class Space : std::uint8_t { device, host, host_pinned };

// The three kinds of rows that come by the ten thousand have no initialisers, so that tables of them are copied as
// bytes: always write all fields, `{…}`.
struct Event {
  std::uint32_t block;  // index into blocks; for segment events into segments
  EventKind kind;
  Component component;  // what the block is for from this event on; of a free, what it was for
  Space space;
  std::uint8_t stream;
  friend bool operator==(const Event&, const Event&) = default;
};

struct Block {
  std::int64_t requested_bytes;  // as the program asked; the allocator rounds (Timeline::block_bytes)
  OpId op;                       // who made it, or kNone
  NameId label;                  // a name of its own: a parameter's, "input_ids"; 0: the operator's name serves
  std::int16_t layer;            // the layer it belongs to, kNoLayer outside of layers
  friend bool operator==(const Block&, const Block&) = default;
};

enum class Phase : std::uint8_t { setup, forward, backward, recompute, optimizer, communication, other };

struct OpRecord {
  std::int64_t flops;         // floating-point operations: two for a multiply-accumulate
  std::int64_t bytes_moved;   // read and written once each, in device memory
  std::uint32_t first_event;  // the operator's events start here
  NameId name;                // "mm", "silu_backward"
  NameId module;              // "self_attn.q_proj"; the layer's number stands in `layer`
  std::int16_t layer;
  Phase phase;
  friend bool operator==(const OpRecord&, const OpRecord&) = default;
};

struct Mark {
  NameId name = 0;          // "after_forward"
  std::uint32_t event = 0;  // the moment before events[event]
  friend bool operator==(const Mark&, const Mark&) = default;
};

// Memory that the allocator took from the driver; only in timelines that know of it.
struct Segment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::uint8_t stream = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};

struct Timeline {
  NameTable names;
  std::vector<Block> blocks;
  std::vector<Event> events;
  std::vector<OpRecord> ops;
  std::vector<Mark> marks;
  std::vector<Segment> segments;         // empty unless an allocator was replayed or recorded
  std::vector<std::uint64_t> addresses;  // by block, where known
  std::vector<std::int64_t> times_us;    // by event, where known
  std::int64_t granularity_bytes = 1;    // block sizes are rounded up to a multiple (512 for PyTorch's CUDA allocator)

  // What the block takes out of the allocator, bytes.
  std::int64_t block_bytes(BlockId id) const { return round_up(blocks[id].requested_bytes, granularity_bytes); }
};

// Same tables, row for row, and the same texts behind the ids.
bool identical(const Timeline& a, const Timeline& b);

// The tables as bytes in a fixed layout (little endian, texts by value), for comparing builds of different compilers:
// equal timelines give equal bytes.
std::vector<std::uint8_t> serialise(const Timeline& timeline);

}  // namespace ullage::memory
