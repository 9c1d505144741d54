// The seams of the command line: everything it does to the outside goes through these, so that tests run it in process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/expected.h"
#include "hardware/local.h"
#include "hub/repository.h"

namespace ullage::cli {

// What the surroundings say about texts.
struct Surroundings {
  std::string language;   // as in LANG: "zh_CN.UTF-8"
  bool terminal = false;  // standard output is one
  bool unicode = true;    // the locale's encoding is UTF-8
  bool no_color = false;  // NO_COLOR is set (no-color.org)
  std::size_t columns = 80;
};

struct Streams {
  std::function<Expected<void>(std::string_view)> out;  // fails when the disk is full
  std::function<void(std::string_view)> err;
  Surroundings surroundings;
};

enum class PathKind : std::uint8_t { none, file, directory, other };

struct Files {
  std::function<PathKind(const std::string& path)> kind;
  // A regular file, read in pieces.
  std::function<Expected<std::unique_ptr<ByteSource>>(const std::string& path)> open;
  // The whole file; refuses more than `most_bytes` without reading it.
  std::function<Expected<std::string>(const std::string& path, std::int64_t most_bytes)> read;
  // Replaces the file; a failure leaves the old one as it was.
  std::function<Expected<void>(const std::string& path, std::string_view content)> write;
  // Not files, but read from the machine just so: the cards its driver shows.
  std::function<Expected<std::vector<hardware::LocalDevice>>()> devices;
  // Nor this: a model's repository on the Hub, "org/name" or "org/name@revision".
  std::function<Expected<std::unique_ptr<hub::Repository>>(const std::string& id)> repository;
};

Files real_files();

}  // namespace ullage::cli
