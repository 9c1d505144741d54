#include "memory/naive_allocator.h"

#include <algorithm>

namespace ullage::memory::testing {

NaiveAllocator::Found NaiveAllocator::best(std::int64_t bytes, int stream, bool small) {
  Found found;
  for (Segment& segment : segments_) {
    if (segment.stream != stream || segment.small != small) continue;
    for (std::size_t i = 0; i < segment.pieces.size(); ++i) {
      const Piece& piece = segment.pieces[i];
      if (piece.used || piece.bytes < bytes) continue;
      if (found.segment != nullptr) {
        const Piece& other = found.segment->pieces[found.piece];
        if (piece.bytes > other.bytes || (piece.bytes == other.bytes && piece.address > other.address)) continue;
      }
      found = {&segment, i};
    }
  }
  return found;
}

bool NaiveAllocator::add_segment(std::int64_t bytes, int stream, bool small) {
  std::int64_t size = 2 << 20;
  if (!small) size = bytes < 10 << 20 ? 20 << 20 : (bytes + (2 << 20) - 1) / (2 << 20) * (2 << 20);
  if (reserved() + size > card_) return false;
  segments_.push_back({{{next_, size, false}}, size, stream, small});
  next_ += static_cast<std::uint64_t>(size);
  return true;
}

std::optional<Place> NaiveAllocator::allocate(std::int64_t requested, int stream) {
  const std::int64_t bytes = std::max<std::int64_t>((requested + 511) / 512 * 512, 512);
  const bool small = bytes <= 1 << 20;
  Found found = best(bytes, stream, small);
  if (found.segment == nullptr) {
    if (!add_segment(bytes, stream, small)) {
      release_unused();
      if (!add_segment(bytes, stream, small)) return std::nullopt;
    }
    found = best(bytes, stream, small);
  }
  std::vector<Piece>& pieces = found.segment->pieces;
  Piece& piece = pieces[found.piece];
  const std::int64_t rest = piece.bytes - bytes;
  const Place out{piece.address, small ? (rest >= 512 ? bytes : piece.bytes) : (rest > 1 << 20 ? bytes : piece.bytes)};
  piece.used = true;
  if (out.bytes != piece.bytes) {
    const Piece behind{piece.address + static_cast<std::uint64_t>(bytes), rest, false};
    piece.bytes = bytes;
    pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(found.piece) + 1, behind);
  }
  return out;
}

void NaiveAllocator::free(std::uint64_t address) {
  for (Segment& segment : segments_) {
    for (Piece& piece : segment.pieces) {
      if (piece.address == address) piece.used = false;
    }
    std::vector<Piece> merged;
    for (const Piece& piece : segment.pieces) {
      if (!merged.empty() && !merged.back().used && !piece.used) merged.back().bytes += piece.bytes;
      else merged.push_back(piece);
    }
    segment.pieces = std::move(merged);
  }
}

void NaiveAllocator::release_unused() {
  std::erase_if(segments_, [](const Segment& s) { return s.pieces.size() == 1 && !s.pieces[0].used; });
}

std::int64_t NaiveAllocator::reserved() const {
  std::int64_t out = 0;
  for (const Segment& segment : segments_) out += segment.bytes;
  return out;
}

std::int64_t NaiveAllocator::allocated() const {
  std::int64_t out = 0;
  for (const Segment& segment : segments_) {
    for (const Piece& piece : segment.pieces) out += piece.used ? piece.bytes : 0;
  }
  return out;
}

}  // namespace ullage::memory::testing
