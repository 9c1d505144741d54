// The one file that knows libcurl. Its functions are looked up in the library when it is loaded, so that a program that
// asks nobody does without it.
#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <deque>

#include "hub/transport.h"

namespace ullage::hub {
namespace {

constexpr long kMostConnections = 16;
constexpr int kPollMilliseconds = 1000;

// libcurl's functions under their names, without the prefix.
struct Curl {
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;
  decltype(&curl_multi_init) multi_init = nullptr;
  decltype(&curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&curl_multi_setopt) multi_setopt = nullptr;
  decltype(&curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&curl_multi_perform) multi_perform = nullptr;
  decltype(&curl_multi_poll) multi_poll = nullptr;
  decltype(&curl_multi_info_read) multi_info_read = nullptr;
};

template <class Function>
bool look_up(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

bool look_up_all(void* library, Curl& curl) {
  return look_up(library, "curl_easy_init", curl.easy_init) &&
         look_up(library, "curl_easy_cleanup", curl.easy_cleanup) &&
         look_up(library, "curl_easy_setopt", curl.easy_setopt) &&
         look_up(library, "curl_easy_getinfo", curl.easy_getinfo) &&
         look_up(library, "curl_easy_strerror", curl.easy_strerror) &&
         look_up(library, "curl_slist_append", curl.slist_append) &&
         look_up(library, "curl_slist_free_all", curl.slist_free_all) &&
         look_up(library, "curl_multi_init", curl.multi_init) &&
         look_up(library, "curl_multi_cleanup", curl.multi_cleanup) &&
         look_up(library, "curl_multi_setopt", curl.multi_setopt) &&
         look_up(library, "curl_multi_add_handle", curl.multi_add_handle) &&
         look_up(library, "curl_multi_remove_handle", curl.multi_remove_handle) &&
         look_up(library, "curl_multi_perform", curl.multi_perform) &&
         look_up(library, "curl_multi_poll", curl.multi_poll) &&
         look_up(library, "curl_multi_info_read", curl.multi_info_read);
}

// One request under way. libcurl holds its address.
struct Transfer {
  const Curl* curl = nullptr;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::int64_t most_bytes = 0;
  HttpResponse response;
  CURLcode result = CURLE_OK;

  ~Transfer() {
    if (headers != nullptr) curl->slist_free_all(headers);
    if (easy != nullptr) curl->easy_cleanup(easy);
  }
};

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  static_cast<Transfer*>(user)->response.fields.add_line({data, size * count});
  return size * count;
}

// Taking less than is offered ends the transfer.
std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const std::size_t offered = size * count;
  const std::size_t room = static_cast<std::size_t>(transfer.most_bytes) - transfer.response.body.size();
  transfer.response.body.append(data, std::min(offered, room));
  if (offered <= room) return offered;
  transfer.response.cut = true;
  return room;
}

template <class T>
void set(const Transfer& transfer, CURLoption option, T value) {
  transfer.curl->easy_setopt(transfer.easy, option, value);
}

void set_headers(Transfer& transfer, const HttpRequest& request) {
  // Sizes are the file's own only where nothing is compressed on the way.
  transfer.headers = transfer.curl->slist_append(transfer.headers, "Accept-Encoding: identity");
  if (!request.token.empty())
    transfer.headers =
        transfer.curl->slist_append(transfer.headers, ("Authorization: Bearer " + request.token).c_str());
  set(transfer, CURLOPT_HTTPHEADER, transfer.headers);
  if (!request.range) return;
  const ByteSpan& span = *request.range;
  set(transfer, CURLOPT_RANGE, fmt::format("{}-{}", span.offset, span.offset + span.length - 1).c_str());
}

void prepare(Transfer& transfer, const HttpRequest& request, int timeout_seconds) {
  transfer.most_bytes = request.most_bytes;
  set(transfer, CURLOPT_URL, request.url.c_str());
  set(transfer, CURLOPT_PROTOCOLS_STR, "http,https");
  set(transfer, CURLOPT_USERAGENT, "ullage");
  set(transfer, CURLOPT_NOSIGNAL, 1L);
  set(transfer, CURLOPT_FOLLOWLOCATION, 0L);
  set(transfer, CURLOPT_CONNECTTIMEOUT, static_cast<long>(timeout_seconds));
  set(transfer, CURLOPT_LOW_SPEED_LIMIT, 1L);  // bytes a second, over so many seconds
  set(transfer, CURLOPT_LOW_SPEED_TIME, static_cast<long>(timeout_seconds));
  set(transfer, CURLOPT_HEADERFUNCTION, on_header);
  set(transfer, CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  set(transfer, CURLOPT_WRITEFUNCTION, on_body);
  set(transfer, CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(transfer, CURLOPT_PRIVATE, static_cast<void*>(&transfer));
  set_headers(transfer, request);
}

std::string failure_of(const Curl& curl, const Transfer& transfer, int timeout_seconds) {
  switch (transfer.result) {
    case CURLE_OPERATION_TIMEDOUT: return fmt::format("nothing came for {} s", timeout_seconds);
    case CURLE_PARTIAL_FILE: return fmt::format("the answer broke off after {} bytes", transfer.response.body.size());
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY: return "the name of the host is not known here";
    case CURLE_COULDNT_CONNECT: return "nobody listens there";
    default: return curl.easy_strerror(transfer.result);
  }
}

class CurlTransport : public Transport {
 public:
  CurlTransport(void* library, const Curl& curl, int timeout_seconds)
      : library_(library), curl_(curl), timeout_seconds_(timeout_seconds), multi_(curl_.multi_init()) {
    curl_.multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, kMostConnections);
    curl_.multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, kMostConnections);
  }

  // The library stays: what it has started, such as a resolver's thread, may outlive us.
  ~CurlTransport() override { curl_.multi_cleanup(multi_); }

  std::vector<HttpOutcome> fetch(std::span<const HttpRequest> requests) override {
    std::deque<Transfer> transfers(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      transfers[i].curl = &curl_;
      transfers[i].easy = curl_.easy_init();
      prepare(transfers[i], requests[i], timeout_seconds_);
      curl_.multi_add_handle(multi_, transfers[i].easy);
    }
    run();
    std::vector<HttpOutcome> out;
    for (Transfer& transfer : transfers) {
      curl_.multi_remove_handle(multi_, transfer.easy);
      out.push_back(outcome_of(transfer));
    }
    return out;
  }

 private:
  void run() {
    int running = 1;
    while (running > 0) {
      if (curl_.multi_perform(multi_, &running) != CURLM_OK) return;
      take_finished();
      if (running > 0) curl_.multi_poll(multi_, nullptr, 0, kPollMilliseconds, nullptr);
    }
  }

  void take_finished() {
    int left = 0;
    for (CURLMsg* message = curl_.multi_info_read(multi_, &left); message != nullptr;
         message = curl_.multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode result = message->data.result;
      void* user = nullptr;
      curl_.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &user);
      if (user != nullptr) static_cast<Transfer*>(user)->result = result;
    }
  }

  HttpOutcome outcome_of(Transfer& transfer) const {
    const bool good = transfer.result == CURLE_OK || (transfer.result == CURLE_WRITE_ERROR && transfer.response.cut);
    if (!good) return {std::nullopt, failure_of(curl_, transfer, timeout_seconds_)};
    long status = 0;
    curl_.easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    transfer.response.status = static_cast<int>(status);
    return {std::move(transfer.response), {}};
  }

  [[maybe_unused]] void* library_;
  Curl curl_;
  int timeout_seconds_;
  CURLM* multi_;
};

}  // namespace

Expected<std::unique_ptr<Transport>> open_transport(const Settings& settings) {
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    Curl curl;
    if (library != nullptr && look_up_all(library, curl))
      return std::make_unique<CurlTransport>(library, curl, settings.timeout_seconds);
  }
  return fail(ErrorCode::unsupported, settings.endpoint,
              "cannot be asked without libcurl; install it (Debian: libcurl4)");
}

}  // namespace ullage::hub
