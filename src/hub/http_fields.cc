#include "hub/http_fields.h"

#include <algorithm>
#include <charconv>

#include "base/lines.h"

namespace ullage::hub {
namespace {

constexpr std::size_t kMostFieldBytes = 256 * 1024;
constexpr std::size_t kLongestUrl = 16 * 1024;
constexpr std::size_t kLongestName = 128;

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; });
}

// Where "https://" ends; 0: it begins with neither scheme.
std::size_t scheme_length(std::string_view url) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (compare_ignoring_case(url.substr(0, scheme.size()), scheme) == 0) return scheme.size();
  }
  return 0;
}

}  // namespace

void HttpFields::add_line(std::string_view line) {
  line = trimmed(line);
  if (line.starts_with("HTTP/")) {
    fields_.clear();
    bytes_ = 0;
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0 || bytes_ + line.size() > kMostFieldBytes) return;
  bytes_ += line.size();
  fields_.emplace_back(line.substr(0, colon), trimmed(line.substr(colon + 1)));
}

std::string_view HttpFields::find(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (compare_ignoring_case(key, name) == 0) return value;
  }
  return {};
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t value = -1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < 0) return std::nullopt;
  return value;
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  if (compare_ignoring_case(text.substr(0, 6), "bytes ") != 0) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t dash = text.find('-');
  const std::size_t slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) return std::nullopt;
  const auto first = parse_count(text.substr(0, dash));
  const auto last = parse_count(text.substr(dash + 1, slash - dash - 1));
  const auto whole = parse_count(text.substr(slash + 1));
  if (!first || !last || !whole || *first > *last || *last >= *whole) return std::nullopt;
  return ContentRange{*first, *last, *whole};
}

std::string etag_name(std::string_view text) {
  if (text.starts_with("W/")) text.remove_prefix(2);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  });
  return plain && text.size() <= kLongestName ? std::string(text) : std::string();
}

bool is_commit(std::string_view text) {
  return text.size() == 40 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string origin_of(std::string_view url) {
  const std::size_t scheme = scheme_length(url);
  if (scheme == 0) return {};
  const std::string_view host = url.substr(scheme, url.find_first_of("/?#", scheme) - scheme);
  // With an @ the host is what stands behind it; nobody who redirects honestly needs one.
  if (host.empty() || has_control(host) || host.find('@') != std::string_view::npos) return {};
  std::string out(url.substr(0, scheme + host.size()));
  std::transform(out.begin(), out.end(), out.begin(), ascii_lower);
  return out;
}

std::string resolve_location(std::string_view base, std::string_view location) {
  if (location.empty() || location.size() > kLongestUrl || has_control(location)) return {};
  if (scheme_length(location) > 0) return origin_of(location).empty() ? std::string() : std::string(location);
  const std::string origin = origin_of(base);
  if (origin.empty()) return {};
  if (location.starts_with("//")) {
    std::string out = origin.substr(0, origin.find(':') + 1).append(location);
    return origin_of(out).empty() ? std::string() : out;
  }
  if (location.front() == '/') return origin + std::string(location);
  if (location.find(':') < location.find('/')) return {};  // another scheme
  const std::string_view path = base.substr(0, base.find_first_of("?#"));
  const std::size_t slash = path.rfind('/');
  if (slash < origin.size()) return origin + "/" + std::string(location);
  return std::string(path.substr(0, slash + 1)).append(location);
}

}  // namespace ullage::hub
