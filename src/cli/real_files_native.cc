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

}  // namespace

Files real_files() { return {kind_of, read_file, write_file, hardware::local_devices}; }

}  // namespace ullage::cli
