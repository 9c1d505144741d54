// The command line with something changed.
#include <algorithm>
#include <cctype>

#include "launch/launch.h"

namespace ullage::launch {
namespace {

std::string flag_name(const std::string& word) { return word.substr(0, word.find('=')); }

bool is_flag(const std::string& word) {
  if (word.size() < 2 || word.front() != '-' || word == "--") return false;
  return std::isdigit(static_cast<unsigned char>(word[1])) == 0 && word[1] != '.';
}

class Rewriter {
 public:
  explicit Rewriter(const Launch& launch) : launch_(launch), words_(launch.arguments) {}

  // All places where it stands are left out but the first, which takes the new value.
  void change(const std::string& name, const std::string& value) {
    const auto wanted = find_flag(launch_.engine, name);
    bool placed = false;
    for (std::size_t i = 0; i < words_.size();) {
      const auto here = is_flag(words_[i]) ? find_flag(launch_.engine, flag_name(words_[i])) : std::nullopt;
      if (!here || !wanted || here->name != wanted->name) {
        ++i;
        continue;
      }
      const std::string written = flag_name(words_[i]);
      erase_at(i);
      if (placed) continue;
      placed = true;
      i = insert_at(i, written, value);
    }
    if (!placed) insert_at(words_.size(), name, value);
  }

  // Flags that the engine does not have.
  void correct(const UnknownFlag& unknown) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (flag_name(words_[i]) != unknown.written) continue;
      if (!is_flag(words_[i])) {
        words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
      if (unknown.taken_for.empty()) {
        erase_at(i);
        return;
      }
      words_[i] = unknown.taken_for + words_[i].substr(unknown.written.size());
    }
  }

  std::string line() const {
    std::vector<std::string> all = launch_.before;
    all.insert(all.end(), words_.begin(), words_.end());
    return shell_line(all);
  }

 private:
  // The flag and its values.
  void erase_at(std::size_t i) {
    const bool apart = words_[i].find('=') == std::string::npos;
    const auto flag = find_flag(launch_.engine, flag_name(words_[i]));
    const bool valued = !flag || flag->takes != Takes::nothing;
    const bool listed = flag && flag->takes == Takes::values;
    auto end = words_.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    while (apart && valued && end != words_.end() && !is_flag(*end)) {
      ++end;
      if (!listed) break;
    }
    words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(i), end);
  }

  std::size_t insert_at(std::size_t i, const std::string& name, const std::string& value) {
    auto at = words_.insert(words_.begin() + static_cast<std::ptrdiff_t>(i), name);
    if (value.empty()) return i + 1;
    words_.insert(at + 1, value);
    return i + 2;
  }

  const Launch& launch_;
  std::vector<std::string> words_;
};

}  // namespace

std::string changed_command(const Launch& launch, std::span<const std::pair<std::string, std::string>> changes) {
  Rewriter rewriter(launch);
  for (const UnknownFlag& unknown : launch.unknown) rewriter.correct(unknown);
  for (const auto& [name, value] : changes) rewriter.change(name, value);
  return rewriter.line();
}

}  // namespace ullage::launch
