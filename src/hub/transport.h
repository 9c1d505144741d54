// Requests to a server, many at once: the seam in front of the network.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "hub/http_fields.h"
#include "hub/settings.h"

namespace ullage::hub {

// `length` bytes (> 0) from `offset` on.
struct ByteSpan {
  std::int64_t offset = 0;
  std::int64_t length = 0;
};

// A GET.
struct HttpRequest {
  std::string url;
  std::string token;              // sent as "Authorization: Bearer …"; empty: not
  std::optional<ByteSpan> range;  // asked for; a server may send everything all the same
  std::int64_t most_bytes = 0;    // of the body: it is cut there
};

struct HttpResponse {
  int status = 0;
  HttpFields fields;
  std::string body;
  bool cut = false;  // the server had more
};

// Either a response or, in words, why there is none: nobody answered, or not in time, or not to the end.
struct HttpOutcome {
  std::optional<HttpResponse> response;
  std::string failure;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // One outcome a request, in their order. Follows no redirects and tries nothing twice.
  virtual std::vector<HttpOutcome> fetch(std::span<const HttpRequest> requests) = 0;

 protected:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
};

// Through libcurl, which is loaded now; fails with ErrorCode::unsupported where this machine has none.
Expected<std::unique_ptr<Transport>> open_transport(const Settings& settings);

}  // namespace ullage::hub
