// The fields of an HTTP response, and what the few that matter here say. All of it comes from a stranger: a field that
// is not what it should be is as good as absent.
//
// Sources: RFC 9110, sections 5 (fields), 10.2.3 (Retry-After), 14.4 (Content-Range), 10.2.2 (Location); RFC 3986,
// section 5.2 (resolving references).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ullage::hub {

class HttpFields {
 public:
  // One line as it came. A status line begins anew: what came before was an interim response's.
  void add_line(std::string_view line);
  // The first of that name, ignoring case; empty: none.
  std::string_view find(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
  std::size_t bytes_ = 0;
};

struct ContentRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t whole = 0;  // size of the whole file
};

// "bytes 0-65535/1000000"; nothing where it contradicts itself or names no size.
std::optional<ContentRange> parse_content_range(std::string_view text);
// A whole number of bytes or seconds, as in Content-Length and Retry-After; a date is nothing.
std::optional<std::int64_t> parse_count(std::string_view text);
// "W/\"abc\"" without its marks, where it can be a file's name; else empty.
std::string etag_name(std::string_view text);
// A commit is 40 hexadecimal digits.
bool is_commit(std::string_view text);

// "https://host:8080", in small letters, of an address; empty where it is none of http or https.
std::string origin_of(std::string_view url);
// Where a Location of a response from `base` leads; empty where that is neither http nor https.
std::string resolve_location(std::string_view base, std::string_view location);

}  // namespace ullage::hub
