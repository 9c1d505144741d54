#include "base/file.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

namespace ullage {
namespace {

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

tl::unexpected<Error> system_failure(const std::string& path, std::string_view doing) {
  const int error = errno;
  return fail(error == ENOENT ? ErrorCode::not_found : ErrorCode::io, path,
              fmt::format("cannot {}: {}", doing, std::strerror(error)));
}

}  // namespace

Expected<std::string> read_file(const std::string& path, std::int64_t most_bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error || !std::filesystem::exists(status)) return fail(ErrorCode::not_found, path, "no such file");
  if (std::filesystem::is_directory(status)) {
    return fail(ErrorCode::invalid_argument, path, "is a directory; name a file in it");
  }
  if (!std::filesystem::is_regular_file(status))
    return fail(ErrorCode::invalid_argument, path, "is not a regular file");
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  if (!error && size > most_bytes) {
    return fail(ErrorCode::too_large, path, fmt::format("has {} bytes; at most {} are read here", size, most_bytes));
  }
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) return system_failure(path, "open");
  std::string content(static_cast<std::size_t>(error ? 0 : size), '\0');
  const std::size_t got = std::fread(content.data(), 1, content.size(), file.get());
  content.resize(got);
  if (std::ferror(file.get()) != 0) return system_failure(path, "read");
  return content;
}

Expected<void> write_file(const std::string& path, std::string_view content) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return fail(ErrorCode::invalid_argument, path, "is a directory; name a file to write");
  }
  // A device such as /dev/stdout cannot be renamed over.
  const bool plain = !std::filesystem::exists(path, error) || std::filesystem::is_regular_file(path, error);
  const std::string target = plain ? path + ".part" : path;
  std::FILE* file = std::fopen(target.c_str(), "wb");
  if (file == nullptr) return system_failure(path, "write");
  bool good = content.empty() || std::fwrite(content.data(), 1, content.size(), file) == content.size();
  good = std::fflush(file) == 0 && good;
  int saved = errno;
  if (std::fclose(file) != 0 && good) {
    good = false;
    saved = errno;
  }
  if (good && plain && std::rename(target.c_str(), path.c_str()) != 0) {
    good = false;
    saved = errno;
  }
  if (good) return {};
  if (plain) std::remove(target.c_str());
  errno = saved;
  return system_failure(path, "write");
}

}  // namespace ullage
