#include "corpus/case.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "corpus/resolve.h"

namespace ullage::corpus {
namespace {

Expected<std::vector<Quantity>> read_quantities(const JsonObject& line, std::string_view key) {
  std::vector<Quantity> out;
  if (!line.has(key)) return out;
  const auto object = line.object(key);
  if (!object) return tl::unexpected<Error>(object.error());
  for (const auto& [name, value] : object->json().items()) {
    const auto number = as_number(value);
    if (!number) return fail(ErrorCode::malformed, object->where(name), "expected a number, true or false");
    out.push_back({name, *number});
  }
  return out;
}

Expected<void> read_texts(const JsonObject& line, Case& entry) {
  struct Field {
    std::string_view key;
    std::string& text;
  };
  for (const Field& field :
       {Field{"id", entry.id}, Field{"source", entry.source}, Field{"engine", entry.engine},
        Field{"method", entry.method}, Field{"confidence", entry.confidence}, Field{"date", entry.date}}) {
    auto text = line.string(field.key, "");
    if (!text) return tl::unexpected<Error>(text.error());
    field.text = *std::move(text);
  }
  return {};
}

Expected<void> read_lists(const JsonObject& line, Case& entry) {
  auto args = line.strings("args");
  if (!args) return tl::unexpected<Error>(args.error());
  auto expect = read_quantities(line, "expect");
  if (!expect) return tl::unexpected<Error>(expect.error());
  auto precision = read_quantities(line, "precision");
  if (!precision) return tl::unexpected<Error>(precision.error());
  entry.args = *std::move(args);
  entry.expect = *std::move(expect);
  entry.precision = *std::move(precision);
  if (entry.args.empty())
    return fail(ErrorCode::malformed, line.where("args"), "missing; expected the arguments of a call");
  if (entry.expect.empty())
    return fail(ErrorCode::malformed, line.where("expect"), "missing; expected what was measured");
  return {};
}

Expected<Case> read_case(std::string_view text, const std::string& where, std::string folder) {
  const auto json = parse_json(text, where);
  if (!json) return tl::unexpected<Error>(json.error());
  if (!json->is_object()) return fail(ErrorCode::malformed, where, "expected a JSON object, one case a line");
  const JsonObject line(*json, where);
  Case entry;
  entry.where = where;
  entry.folder = std::move(folder);
  if (auto read = read_texts(line, entry); !read) return tl::unexpected<Error>(read.error());
  if (auto read = read_lists(line, entry); !read) return tl::unexpected<Error>(read.error());
  if (entry.id.empty()) return fail(ErrorCode::malformed, line.where("id"), "missing");
  return entry;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

bool same_name(std::string_view a, std::string_view b) {
  const auto plain = [](char c) { return c == '_' ? '-' : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return plain(x) == plain(y); });
}

}  // namespace

Expected<std::vector<Case>> read_cases(const std::string& path) {
  const auto content = read_file(path, kMaxCorpusBytes);
  if (!content) return tl::unexpected<Error>(content.error());
  std::vector<Case> cases;
  std::size_t number = 0;
  for (std::string_view rest = *content; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto entry = read_case(line, fmt::format("{}: line {}", path, number), folder_of(path));
    if (!entry) return tl::unexpected<Error>(entry.error());
    cases.push_back(*std::move(entry));
  }
  return cases;
}

std::string_view model_of(const Case& entry) {
  return entry.args.size() > 1 && !entry.args[1].starts_with("-") ? std::string_view(entry.args[1])
                                                                  : std::string_view();
}

std::optional<std::string> option_of(const Case& entry, std::string_view name) {
  for (std::size_t i = 0; i < entry.args.size(); ++i) {
    std::string_view word = entry.args[i];
    if (!word.starts_with("--")) continue;
    word.remove_prefix(2);
    const std::size_t equals = word.find('=');
    if (!same_name(word.substr(0, equals), name)) continue;
    if (equals != std::string_view::npos) return std::string(word.substr(equals + 1));
    const bool has_value = i + 1 < entry.args.size() && !entry.args[i + 1].starts_with("--");
    return has_value ? entry.args[i + 1] : "true";
  }
  return std::nullopt;
}

}  // namespace ullage::corpus
