// Bytes that are read in pieces: a mapped file, a text in memory, ranges of something far away.
//
// Readers of headers take one of these, so that a file of hundreds of gigabytes costs what its header costs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/expected.h"

namespace ullage {

// One source serves one thread at a time; different sources may be read at once.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Stands in front of errors: the path or the address.
  virtual const std::string& name() const = 0;
  virtual std::int64_t size_bytes() const = 0;

  // The bytes [offset, offset + length), all of them. The view lives as long as the source, whatever is read later; a
  // mapped file costs nothing, a remote one keeps what it has fetched. Readers ask for what they need next and a little
  // more, never for a whole file: a remote source may round a request up.
  // Fails with ErrorCode::malformed when the source ends before that range does ("ends at byte 12; …"), with
  // ErrorCode::io when bytes that should be there could not be had, and with whatever else a remote source documents.
  virtual Expected<std::string_view> read(std::int64_t offset, std::int64_t length) = 0;

 protected:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
};

// The check that every implementation of read() begins with.
Expected<void> check_range(const ByteSource& source, std::int64_t offset, std::int64_t length);

// Bytes that are in memory already; `content` is kept.
std::unique_ptr<ByteSource> memory_source(std::string name, std::string content);

// A regular file, mapped into memory: nothing is read before it is looked at. Fails as read_file() does. Whoever
// shortens the file meanwhile ends the program (SIGBUS), as with every mapped file. Not in the portable core.
Expected<std::unique_ptr<ByteSource>> open_file(const std::string& path);

}  // namespace ullage
