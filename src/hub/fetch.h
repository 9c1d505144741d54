// Requests with what the way there demands: redirects are followed, what fails for the moment is tried again.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "hub/transport.h"

namespace ullage::hub {

// One file of a repository, or a part of it.
struct FileRequest {
  std::string url;
  std::optional<ByteSpan> range;
  std::int64_t most_bytes = 0;  // of the body
};

struct FileResponse {
  int status = 0;
  HttpFields hub;   // the Hub's own answer: commit, etag and size of the file
  HttpFields last;  // the answer that carried the body, perhaps another host's
  std::string body;
  bool cut = false;
};

// Waits so many seconds.
using Wait = std::function<void(double seconds)>;

inline constexpr int kMostTries = 5;
inline constexpr int kMostRedirects = 10;

// One result a request, in their order. The token goes to the host of the first address only. 408, 429, 5xx and broken
// connections are tried kMostTries times, after half a second, then twice as long each time, or after what Retry-After
// asks for. Other statuses are responses. Fails with ErrorCode::io; `where` of the error is the address.
std::vector<Expected<FileResponse>> fetch_files(Transport& transport, const std::string& token,
                                                std::span<const FileRequest> requests, const Wait& wait);

// Sleeps.
void wait_really(double seconds);

}  // namespace ullage::hub
