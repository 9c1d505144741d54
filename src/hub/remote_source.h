// A file behind an address, read in ranges.
#pragma once

#include <memory>
#include <string>

#include "base/byte_source.h"
#include "hub/repository.h"

namespace ullage::hub {

// What all files of a repository share; made when the first request is.
struct Connection {
  Settings settings;
  Outside outside;
  std::unique_ptr<Transport> transport;

  // Fails where there is no libcurl, or offline; `where` is what was asked for.
  Expected<std::vector<Expected<FileResponse>>> fetch(std::span<const FileRequest> requests, const std::string& where);
};

struct RemoteFile {
  std::string name;  // "org/name/path"
  std::string url;
  std::int64_t size_bytes = 0;
  std::string beginning;  // its first bytes, already here
};

// Called with the first bytes that are here, when the source goes and has more of them than it began with.
using Keep = std::function<void(const std::string& beginning)>;

// Reads ahead, more the more has been read, up to some megabytes.
std::unique_ptr<ByteSource> remote_source(std::shared_ptr<Connection> connection, RemoteFile file, Keep keep);

// Bytes from `offset` on, at least one, out of the answer to a request for them; nothing where the answer is another.
std::optional<std::string_view> part_of(const FileResponse& response, std::int64_t offset);
// Size of the whole file, as far as an answer tells it.
std::optional<std::int64_t> whole_size(const FileResponse& response);

}  // namespace ullage::hub
