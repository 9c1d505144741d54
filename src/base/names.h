// Interned names: an event carries two bytes, the text is looked up when somebody reads it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ullage {

// Index of a name in its NameTable; 0 is the empty name.
using NameId = std::uint16_t;

// At most 65,535 names; what does not fit any more becomes the empty name (callers intern kinds of things,
// never instances, so real tables hold a few hundred).
class NameTable {
 public:
  NameTable() { intern({}); }

  NameId intern(std::string_view name) {
    if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
    if (names_.size() > 0xFFFF) return 0;
    const auto id = static_cast<NameId>(names_.size());
    names_.emplace_back(name);
    ids_.emplace(name, id);
    return id;
  }

  std::string_view operator[](NameId id) const { return id < names_.size() ? names_[id] : std::string_view{}; }
  std::size_t size() const { return names_.size(); }

 private:
  std::vector<std::string> names_;
  // Looked up by any text, without making a string of it.
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, NameId, Hash, std::equal_to<>> ids_;
};

}  // namespace ullage
