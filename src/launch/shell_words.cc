#include "launch/shell_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace ullage::launch {
namespace {

constexpr std::size_t kMostGrownBytes = 4 * kMostShellBytes;  // of all words together, variables put in

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool starts_name(char c) { return is_name(c) && std::isdigit(static_cast<unsigned char>(c)) == 0; }

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  Expected<std::vector<ShellCommand>> run() {
    if (text_.size() > kMostShellBytes)
      return fail(ErrorCode::too_large, "COMMAND", fmt::format("longer than {} bytes", kMostShellBytes));
    while (at_ < text_.size() && !grown()) {
      if (!step()) return fail(ErrorCode::malformed, "COMMAND", fault_);
    }
    end_command();
    if (grown()) return fail(ErrorCode::too_large, "COMMAND", "its variables make it too long; write it out");
    return std::move(commands_);
  }

 private:
  bool grown() const { return written_ > kMostGrownBytes; }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  // One token's worth; false: a quote does not end.
  bool step() {
    const char c = peek();
    if (is_blank(c)) return skip_blank();
    if (c == '\n' || c == ';' || c == '|' || c == '(' || c == ')') {
      ++at_;
      end_command();
      return true;
    }
    if (c == '&' && peek(1) != '>') {
      ++at_;
      end_command();
      return true;
    }
    if (c == '#' && !in_word_) return skip_comment();
    if (continues_line()) return true;
    if (c == '>' || c == '<' || (c == '&' && peek(1) == '>')) return skip_redirection();
    return part_of_word(c);
  }

  bool skip_blank() {
    end_word();
    ++at_;
    return true;
  }

  bool skip_comment() {
    at_ = std::min(text_.find('\n', at_), text_.size());
    return true;
  }

  // A backslash before the end of a line, blanks in between forgiven: people paste them.
  bool continues_line() {
    if (peek() != '\\') return false;
    std::size_t end = at_ + 1;
    while (end < text_.size() && is_blank(text_[end])) ++end;
    const bool breaks = end < text_.size() ? text_[end] == '\n' : true;
    if (!breaks) return false;
    if (end > at_ + 1 && end < text_.size()) end_word();
    at_ = std::min(end + 1, text_.size());
    return true;
  }

  // "2> file", ">> file", "2>&1", "< file".
  bool skip_redirection() {
    const bool numbered = !word_.empty() && std::all_of(word_.begin(), word_.end(), [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0;
    });
    if (numbered) drop_word();
    end_word();
    while (peek() == '>' || peek() == '<' || peek() == '&') ++at_;
    while (is_blank(peek())) ++at_;
    redirected_ = true;
    return true;
  }

  bool part_of_word(char c) {
    // What a variable without a value leaves is no word.
    if (c == '$') return expansion(false);
    in_word_ = true;
    if (c == '\'') return single_quoted();
    if (c == '"') return double_quoted();
    if (c == '\\') {
      put(peek(1));
      at_ += 2;
      return true;
    }
    put(c);
    ++at_;
    return true;
  }

  bool single_quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return unended('\'');
    put(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return true;
  }

  bool double_quoted() {
    const std::size_t start = at_++;
    while (peek() != '"') {
      if (at_ >= text_.size()) {
        at_ = start;
        return unended('"');
      }
      if (peek() == '$' && expansion(true)) continue;
      if (peek() == '\\' && escapes(peek(1))) {
        if (peek(1) != '\n') put(peek(1));
        at_ += 2;
        continue;
      }
      put(peek());
      ++at_;
      if (grown()) return true;
    }
    ++at_;
    return true;
  }

  // What a backslash between double quotes takes its meaning from.
  static bool escapes(char c) { return c == '"' || c == '\\' || c == '$' || c == '`' || c == '\n'; }

  bool unended(char quote) {
    fault_ = fmt::format("the quote {} at byte {} does not end; close it", quote, at_);
    return false;
  }

  // $NAME, ${NAME}, ${NAME:-else}; what is not known stays as it is.
  bool expansion(bool quoted) {
    const bool braced = peek(1) == '{';
    const std::size_t first = at_ + (braced ? 2 : 1);
    std::size_t end = first;
    while (end < text_.size() && is_name(text_[end])) ++end;
    const std::string_view name = text_.substr(first, end - first);
    std::string_view otherwise;
    bool has_otherwise = false;
    if (braced) {
      const std::size_t close = text_.find('}', end);
      if (close == std::string_view::npos) return literal();
      std::string_view rest = text_.substr(end, close - end);
      has_otherwise = rest.starts_with(":-") || rest.starts_with("-");
      if (has_otherwise) otherwise = rest.substr(rest.front() == ':' ? 2 : 1);
      else if (!rest.empty()) return literal();
      end = close + 1;
    }
    const std::string* value = name.empty() || !starts_name(name.front()) ? nullptr : find_variable(known_, name);
    if (value == nullptr && !has_otherwise) return literal();
    at_ = end;
    insert(value != nullptr && !value->empty() ? std::string_view(*value) : otherwise, quoted);
    return true;
  }

  bool literal() {
    in_word_ = true;
    // $(…) is one word with its blanks.
    if (peek(1) == '(') {
      const std::size_t close = std::min(text_.find(')', at_), text_.size() - 1);
      put(text_.substr(at_, close - at_ + 1));
      at_ = close + 1;
      return true;
    }
    put('$');
    ++at_;
    return true;
  }

  // Outside of quotes a value falls apart into words.
  void insert(std::string_view value, bool quoted) {
    for (const char c : value) {
      if (!quoted && (is_blank(c) || c == '\n')) {
        end_word();
        continue;
      }
      in_word_ = true;
      put(c);
    }
  }

  void put(char c) {
    word_ += c;
    ++written_;
  }
  void put(std::string_view text) {
    word_ += text;
    written_ += text.size();
  }

  void drop_word() {
    word_.clear();
    in_word_ = false;
  }

  void end_word() {
    if (!in_word_) return;
    in_word_ = false;
    std::string word = std::move(word_);
    word_.clear();
    if (redirected_) {
      redirected_ = false;
      return;
    }
    const bool prompt = words_.empty() && (word == "$" || word == "%" || word == ">");
    if (!prompt) words_.push_back(std::move(word));
  }

  void end_command() {
    end_word();
    redirected_ = false;
    ShellCommand command;
    std::size_t first = 0;
    while (first < words_.size() && is_assignment(words_[first])) ++first;
    if (first < words_.size() && words_[first] == "export") {
      for (std::size_t i = first + 1; i < words_.size(); ++i) {
        if (is_assignment(words_[i])) export_variable(words_[i]);
        else if (const std::string* value = find_variable(known_, words_[i]))
          assign(exported_, words_[i] + "=" + *value);
      }
    } else if (first == words_.size()) {
      for (const std::string& word : words_) assign(known_, word);
    } else {
      command.environment = exported_;
      for (std::size_t i = 0; i < first; ++i) assign(command.environment, words_[i]);
      command.words.assign(words_.begin() + static_cast<std::ptrdiff_t>(first), words_.end());
      for (const auto& [name, value] : command.environment) written_ += name.size() + value.size();
      commands_.push_back(std::move(command));
    }
    words_.clear();
  }

  void export_variable(std::string_view assignment) {
    assign(known_, assignment);
    assign(exported_, assignment);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t written_ = 0;
  std::string word_;
  bool in_word_ = false;
  bool redirected_ = false;  // the next word is a file
  std::vector<std::string> words_;
  Variables known_;
  Variables exported_;
  std::vector<ShellCommand> commands_;
  std::string fault_;
};

bool needs_quotes(const std::string& word) {
  return word.empty() || !std::all_of(word.begin(), word.end(), [](char c) {
           return is_name(c) || std::string_view("-./:=,@%+").find(c) != std::string_view::npos;
         });
}

}  // namespace

Expected<std::vector<ShellCommand>> split_shell(std::string_view text) { return Splitter(text).run(); }

bool is_assignment(std::string_view word) {
  if (word.empty() || !starts_name(word.front())) return false;
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), is_name);
}

void assign(Variables& variables, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  std::string name(assignment.substr(0, equals));
  std::string value(equals == std::string_view::npos ? std::string_view() : assignment.substr(equals + 1));
  for (auto& [known, old] : variables) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  variables.emplace_back(std::move(name), std::move(value));
}

const std::string* find_variable(const Variables& variables, std::string_view name) {
  for (const auto& [known, value] : variables) {
    if (known == name) return &value;
  }
  return nullptr;
}

std::string shell_line(std::span<const std::string> words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    if (!needs_quotes(word)) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

}  // namespace ullage::launch
