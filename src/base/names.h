// Interned names: an event carries two bytes, the text is looked up when somebody reads it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ullage {

// Index of a name in its NameTable; 0 is the empty name.
using NameId = std::uint16_t;

// At most 65,536 names; what does not fit any more becomes the empty name (callers intern kinds of things,
// never instances, so real tables hold a few hundred).
class NameTable {
 public:
  NameTable() { intern({}); }

  NameId intern(std::string_view name) {
    if (2 * (names_.size() + 1) > slots_.size()) spread(slots_.empty() ? 16 : 2 * slots_.size());
    std::uint32_t& slot = slots_[slot_of(name)];
    if (slot != kFree) return static_cast<NameId>(slot);
    if (names_.size() > 0xFFFF) return 0;
    slot = static_cast<std::uint32_t>(names_.size());
    names_.emplace_back(name);
    return static_cast<NameId>(slot);
  }

  // Forgets all names but the first `size`.
  void shrink(std::size_t size) {
    if (size >= names_.size()) return;
    names_.resize(size);
    spread(slots_.size());
  }

  std::string_view operator[](NameId id) const { return id < names_.size() ? names_[id] : std::string_view{}; }
  std::size_t size() const { return names_.size(); }

 private:
  static constexpr std::uint32_t kFree = 0xFFFFFFFF;

  // Eight bytes at a time, the last eight again over some of those before.
  static std::uint64_t hash(std::string_view text) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
    std::uint64_t sum = text.size() * kOdd;
    const auto mix = [&](std::uint64_t word) { sum = (sum ^ word) * kOdd, sum ^= sum >> 29; };
    const auto word_at = [&](std::size_t at) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + at, sizeof word);
      return word;
    };
    if (text.size() < 8) {
      for (const char c : text) mix(static_cast<unsigned char>(c));
      return sum;
    }
    for (std::size_t at = 0; at + 8 < text.size(); at += 8) mix(word_at(at));
    mix(word_at(text.size() - 8));
    return sum;
  }

  // Where the name is, or where it would go.
  std::size_t slot_of(std::string_view name) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash(name) & mask;
    while (slots_[at] != kFree && names_[slots_[at]] != name) at = (at + 1) & mask;
    return at;
  }

  void spread(std::size_t slots) {
    slots_.assign(slots, kFree);
    for (std::uint32_t id = 0; id < names_.size(); ++id) slots_[slot_of(names_[id])] = id;
  }

  std::vector<std::string> names_;
  std::vector<std::uint32_t> slots_;  // indices into names_; a power of two, half of them free at least
};

}  // namespace ullage
