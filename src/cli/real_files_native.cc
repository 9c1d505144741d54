#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "cli/streams.h"

namespace ullage::cli {
namespace {

PathKind kind_of(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error || !std::filesystem::exists(status)) return PathKind::none;
  if (std::filesystem::is_directory(status)) return PathKind::directory;
  return std::filesystem::is_regular_file(status) ? PathKind::file : PathKind::other;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// A line that is written over until all files are there; a log would keep every one of them.
void show_progress(std::size_t done, std::size_t all) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\rullage: %zu of %zu files%s", done, all, done == all ? "\r\x1b[K" : "");
}

Expected<std::unique_ptr<hub::Repository>> repository(const std::string& id) {
  hub::Outside outside;
  outside.progress = show_progress;
  return hub::open_repository(id, hub::settings_of(variable), outside);
}

}  // namespace

Files real_files() { return {kind_of, open_file, read_file, write_file, hardware::local_devices, repository}; }

}  // namespace ullage::cli
