#include "model/name_pattern.h"

#include <cstddef>
#include <functional>
#include <string>

namespace ullage::model {
namespace {

// Names and patterns are short; what takes more steps than this is built to.
constexpr int kMostSteps = 20'000;
constexpr int kMostDepth = 200;

using Rest = std::function<bool(std::size_t at)>;

class Matcher {
 public:
  Matcher(std::string_view regex, std::string_view name) : regex_(regex), name_(name) {}

  bool run() {
    return alternatives(0, regex_.size(), 0, 0, [](std::size_t) { return true; });
  }

 private:
  // The end of the alternative that begins at `from`: a "|" outside of groups, or `to`.
  std::size_t end_of_alternative(std::size_t from, std::size_t to) const {
    int depth = 0;
    for (std::size_t i = from; i < to; ++i) {
      const char c = regex_[i];
      if (c == '\\') ++i;
      else if (c == '(') ++depth;
      else if (c == ')') --depth;
      else if (c == '|' && depth == 0) return i;
    }
    return to;
  }

  bool alternatives(std::size_t from, std::size_t to, std::size_t at, int depth, const Rest& rest) {
    while (true) {
      const std::size_t end = end_of_alternative(from, to);
      if (sequence(from, end, at, depth, rest)) return true;
      if (end == to) return false;
      from = end + 1;
    }
  }

  // Behind the atom at `from`: a letter, an escaped one, a group or a class.
  std::size_t end_of_atom(std::size_t from, std::size_t to) const {
    const char c = regex_[from];
    if (c == '\\') return from + 2;
    if (c == '[') {
      const std::size_t close = regex_.find(']', from + 1);
      return close == regex_.npos ? to + 1 : close + 1;
    }
    if (c != '(') return from + 1;
    int depth = 0;
    for (std::size_t i = from; i < to; ++i) {
      if (regex_[i] == '\\') ++i;
      else if (regex_[i] == '(') ++depth;
      else if (regex_[i] == ')' && --depth == 0) return i + 1;
    }
    return to + 1;  // never closed
  }

  bool sequence(std::size_t from, std::size_t to, std::size_t at, int depth, const Rest& rest) {
    if (++steps_ > kMostSteps || depth > kMostDepth) return false;
    if (from >= to) return rest(at);
    if (regex_[from] == '^') return at == 0 && sequence(from + 1, to, at, depth + 1, rest);
    if (regex_[from] == '$') return at == name_.size() && sequence(from + 1, to, at, depth + 1, rest);
    const std::size_t end = end_of_atom(from, to);
    if (end > to) return false;
    const char count = end < to ? regex_[end] : ' ';
    const bool counted = count == '*' || count == '+' || count == '?';
    const std::size_t next = counted ? end + 1 : end;
    const Rest behind = [&, next](std::size_t then) { return sequence(next, to, then, depth + 1, rest); };
    if (!counted) return atom(from, end, at, depth, behind);
    return repeated(from, end, at, depth, count, behind);
  }

  // As often as it goes, then less.
  bool repeated(std::size_t from, std::size_t end, std::size_t at, int depth, char count, const Rest& behind) {
    if (++steps_ > kMostSteps || depth > kMostDepth) return false;
    const char again = count == '?' ? ' ' : '*';
    const bool more = atom(from, end, at, depth + 1, [&](std::size_t then) {
      if (then == at) return false;
      return again == ' ' ? behind(then) : repeated(from, end, then, depth + 1, '*', behind);
    });
    return more || (count != '+' && behind(at));
  }

  bool atom(std::size_t from, std::size_t end, std::size_t at, int depth, const Rest& rest) {
    const char c = regex_[from];
    if (c == '(') {
      const std::size_t inner = regex_.substr(from, 3) == "(?:" ? from + 3 : from + 1;
      return alternatives(inner, end - 1, at, depth + 1, rest);
    }
    if (at >= name_.size() || !fits(from, end, name_[at])) return false;
    return rest(at + 1);
  }

  bool fits(std::size_t from, std::size_t end, char letter) const {
    const char c = regex_[from];
    if (c == '.') return true;
    if (c == '[') return in_class(regex_.substr(from + 1, end - from - 2), letter);
    if (c != '\\') return c == letter;
    if (from + 1 >= regex_.size()) return false;
    const char escaped = regex_[from + 1];
    return escaped == 'd' ? letter >= '0' && letter <= '9' : escaped == letter;
  }

  static bool in_class(std::string_view members, char letter) {
    const bool without = members.starts_with('^');
    if (without) members.remove_prefix(1);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const bool range = i + 2 < members.size() && members[i + 1] == '-';
      if (range ? letter >= members[i] && letter <= members[i + 2] : letter == members[i]) return !without;
      if (range) i += 2;
    }
    return without;
  }

  std::string_view regex_;
  std::string_view name_;
  int steps_ = 0;
};

}  // namespace

bool matches_glob(std::string_view glob, std::string_view name) {
  std::size_t g = 0, n = 0, star = glob.npos, resume = 0;
  while (n < name.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = n;
    } else if (g < glob.size() && glob[g] == name[n]) {
      ++g;
      ++n;
    } else if (star != glob.npos) {
      g = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

bool matches_regex(std::string_view regex, std::string_view name) { return Matcher(regex, name).run(); }

}  // namespace ullage::model
