// The caching allocator once more, the slow way: segments as lists of pieces that are all looked through for every
// request. For comparison with the fast one; default settings, several streams, a card of any size.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace ullage::memory::testing {

struct Place {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

class NaiveAllocator {
 public:
  NaiveAllocator(std::int64_t card_bytes, std::uint64_t first_address) : card_(card_bytes), next_(first_address) {}

  std::optional<Place> allocate(std::int64_t requested, int stream);
  void free(std::uint64_t address);
  void release_unused();
  std::int64_t reserved() const;
  std::int64_t allocated() const;

 private:
  struct Piece {
    std::uint64_t address;
    std::int64_t bytes;
    bool used;
  };
  struct Segment {
    std::vector<Piece> pieces;
    std::int64_t bytes;
    int stream;
    bool small;
  };

  struct Found {
    Segment* segment = nullptr;
    std::size_t piece = 0;
  };

  Found best(std::int64_t bytes, int stream, bool small);
  bool add_segment(std::int64_t bytes, int stream, bool small);

  std::vector<Segment> segments_;
  std::int64_t card_;
  std::uint64_t next_;
};

}  // namespace ullage::memory::testing
