#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "hub/cache.h"
#include "hub/http_fields.h"

namespace ullage::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 96;
constexpr std::size_t kLongestPath = 1024;
constexpr std::int64_t kMostRefBytes = 256;
constexpr std::int64_t kMostBeginningBytes = 256 * 1024 * 1024;
constexpr std::string_view kBeginningMark = "ullage-beginning 1 ";

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestName || name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == '.';
  });
}

// "models--org--name"
std::string folder_name(std::string_view id) {
  const std::size_t slash = id.find('/');
  return fmt::format("models--{}--{}", id.substr(0, slash), id.substr(slash + 1));
}

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Whether the file can be made: its folder exists now.
bool make_folder_for(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  return !error;
}

void write_quietly(const std::string& path, std::string_view content) {
  if (make_folder_for(path)) static_cast<void>(write_file(path, content));
}

std::string without_line_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

// From a file in snapshots/COMMIT/PATH up to the repository's folder.
std::string up_from(std::string_view path) {
  std::string out = "../../";
  for (const char c : path) {
    if (c == '/') out += "../";
  }
  return out;
}

}  // namespace

bool is_repository_id(std::string_view id) {
  const std::size_t slash = id.find('/');
  if (slash == std::string_view::npos) return false;
  return is_name(id.substr(0, slash)) && is_name(id.substr(slash + 1)) && id.find("--") == std::string_view::npos &&
         id.find("..") == std::string_view::npos;
}

bool is_repository_path(std::string_view path) {
  if (path.size() > kLongestPath) return false;
  while (true) {
    const std::size_t slash = path.find('/');
    if (!is_name(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

Cache::Cache(const Settings& settings, std::string_view id) {
  if (!settings.cache.empty()) folder_ = settings.cache + "/" + folder_name(id);
  if (!settings.beginnings.empty()) beginnings_ = settings.beginnings + "/" + folder_name(id);
}

std::optional<std::string> Cache::commit_of(std::string_view revision) const {
  if (is_commit(revision)) return std::string(revision);
  if (folder_.empty()) return std::nullopt;
  const auto content = read_file(fmt::format("{}/refs/{}", folder_, revision), kMostRefBytes);
  if (!content) return std::nullopt;
  std::string commit = without_line_end(*content);
  if (!is_commit(commit)) return std::nullopt;
  return commit;
}

std::optional<std::string> Cache::find(std::string_view commit, std::string_view path) const {
  if (folder_.empty()) return std::nullopt;
  std::string out = fmt::format("{}/snapshots/{}/{}", folder_, commit, path);
  if (!is_file(out)) return std::nullopt;
  return out;
}

bool Cache::is_known_missing(std::string_view commit, std::string_view path) const {
  return !folder_.empty() && is_file(fmt::format("{}/.no_exist/{}/{}", folder_, commit, path));
}

void Cache::keep_commit(std::string_view revision, std::string_view commit) const {
  if (folder_.empty() || is_commit(revision)) return;
  write_quietly(fmt::format("{}/refs/{}", folder_, revision), commit);
}

void Cache::keep_file(std::string_view commit, std::string_view path, std::string_view etag,
                      std::string_view content) const {
  if (folder_.empty() || etag.empty()) return;
  const std::string blob = fmt::format("{}/blobs/{}", folder_, etag);
  const std::string link = fmt::format("{}/snapshots/{}/{}", folder_, commit, path);
  if (!make_folder_for(blob) || !make_folder_for(link)) return;
  if (!is_file(blob) && !write_file(blob, content)) return;
  std::error_code error;
  fs::create_symlink(fmt::format("{}blobs/{}", up_from(path), etag), link, error);
  // A disk without links gets the file itself, as the Hub's tools do it.
  if (error && !is_file(link)) static_cast<void>(write_file(link, content));
}

void Cache::keep_missing(std::string_view commit, std::string_view path) const {
  if (!folder_.empty()) write_quietly(fmt::format("{}/.no_exist/{}/{}", folder_, commit, path), {});
}

// A line with the mark and the size of the whole file, then its first bytes.
std::optional<Cache::Beginning> Cache::find_beginning(std::string_view commit, std::string_view path) const {
  if (beginnings_.empty()) return std::nullopt;
  auto content = read_file(fmt::format("{}/{}/{}", beginnings_, commit, path), kMostBeginningBytes);
  if (!content || !content->starts_with(kBeginningMark)) return std::nullopt;
  const std::size_t end = content->find('\n');
  if (end == std::string::npos) return std::nullopt;
  const auto size = parse_count(std::string_view(*content).substr(kBeginningMark.size(), end - kBeginningMark.size()));
  content->erase(0, end + 1);
  if (!size || static_cast<std::int64_t>(content->size()) > *size) return std::nullopt;
  return Beginning{*size, *std::move(content)};
}

void Cache::keep_beginning(std::string_view commit, std::string_view path, const Beginning& beginning) const {
  if (beginnings_.empty()) return;
  write_quietly(fmt::format("{}/{}/{}", beginnings_, commit, path),
                fmt::format("{}{}\n", kBeginningMark, beginning.size_bytes) + beginning.bytes);
}

}  // namespace ullage::hub
