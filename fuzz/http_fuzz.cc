// Bytes as what a server answers: the fields of a response line by line, and a whole exchange in which the server says
// so, redirects and ranges included. The first line of the input is the address that is asked.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hub/refusal.h"
#include "hub/remote_source.h"

namespace {

using namespace ullage;
using namespace ullage::hub;

constexpr std::int64_t kMost = 4096;

void require(bool holds) {
  if (!holds) std::abort();
}

// Errors are one line that a terminal can show, whatever the server said.
void check_error(const Error& error) {
  require(!error.message.empty());
  require(error.message.find('\n') == std::string::npos);
}

std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

// Answers all requests with one response, as far as its length allows.
class Stranger : public Transport {
 public:
  explicit Stranger(const HttpResponse& response) : response_(response) {}

  std::vector<HttpOutcome> fetch(std::span<const HttpRequest> requests) override {
    std::vector<HttpOutcome> out;
    for (const HttpRequest& request : requests) {
      require(!origin_of(request.url).empty());
      require(request.token.empty() || origin_of(request.url) == "http://hub.example");
      out.push_back({response_, {}});
      out.back().response->body.resize(std::min(response_.body.size(), static_cast<std::size_t>(request.most_bytes)));
    }
    return out;
  }

 private:
  const HttpResponse& response_;
};

HttpResponse response_of(std::string_view rest) {
  HttpResponse out;
  out.status = static_cast<int>(parse_count(take_line(rest)).value_or(200) % 1000);
  for (std::string_view line = take_line(rest); !line.empty(); line = take_line(rest)) out.fields.add_line(line);
  out.body = rest;
  return out;
}

void check_fields(const HttpFields& fields) {
  const auto range = parse_content_range(fields.find("Content-Range"));
  require(!range || (range->first >= 0 && range->first <= range->last && range->last < range->whole));
  const std::string name = etag_name(fields.find("ETag"));
  require(name.find('/') == std::string::npos && name.find("..") == std::string::npos);
  const std::string to = resolve_location("http://hub.example/a/b", fields.find("Location"));
  require(to.empty() || !origin_of(to).empty());
}

void check_source(const HttpResponse& response) {
  Outside outside;
  outside.connect = [&](const Settings&) -> Expected<std::unique_ptr<Transport>> {
    return std::make_unique<Stranger>(response);
  };
  outside.wait = [](double seconds) { require(seconds <= 60); };
  Settings settings;
  settings.endpoint = "http://hub.example";
  settings.token = "secret";
  const auto repository = open_repository("org/name", settings, outside);
  require(repository.has_value());
  const auto content = (*repository)->read("config.json", kMost);
  if (!content) check_error(content.error());
  require(!content || static_cast<std::int64_t>(content->size()) <= kMost);
  const std::string paths[] = {"model.safetensors"};
  const auto sources = (*repository)->open(paths);
  if (!sources) return check_error(sources.error());
  ByteSource& source = *sources->front();
  for (const std::int64_t offset : {std::int64_t{0}, source.size_bytes() / 2}) {
    const auto bytes = source.read(offset, std::min<std::int64_t>(16, source.size_bytes() - offset));
    if (!bytes) check_error(bytes.error());
    require(!bytes || bytes->size() <= 16);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view base = take_line(rest);
  require(origin_of(base).find('@') == std::string::npos);
  const HttpResponse response = response_of(rest);
  check_fields(response.fields);
  const std::string to = resolve_location(base, response.fields.find("Location"));
  require(to.empty() || !origin_of(to).empty());
  check_source(response);
  return 0;
}
