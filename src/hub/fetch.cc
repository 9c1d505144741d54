#include "hub/fetch.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace ullage::hub {
namespace {

constexpr double kFirstWait = 0.5;
constexpr std::int64_t kLongestWait = 60;  // seconds; who asks for more is answered with an error

struct Pending {
  std::size_t index = 0;
  std::string url;
  int tries = 0;
  int redirects = 0;
  std::optional<HttpFields> hub;
};

bool passes_with_time(int status) { return status == 408 || status == 429 || (status >= 500 && status <= 599); }

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// A batch of requests on their way to results.
class Batch {
 public:
  Batch(Transport& transport, const std::string& token, std::span<const FileRequest> requests)
      : transport_(transport), token_(token), requests_(requests) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      pending_.push_back({i, requests[i].url, 0, 0, std::nullopt});
      results_.emplace_back(fail(ErrorCode::internal, requests[i].url, "was not asked for"));
    }
  }

  bool done() const { return pending_.empty(); }

  // One round over everything that is open; seconds to wait before the next.
  double round() {
    std::vector<HttpRequest> requests;
    for (const Pending& one : pending_) requests.push_back(request_of(one));
    std::vector<HttpOutcome> outcomes = transport_.fetch(requests);
    std::vector<Pending> before = std::move(pending_);
    pending_.clear();
    wait_seconds_ = 0;
    for (std::size_t i = 0; i < before.size(); ++i) take(std::move(before[i]), std::move(outcomes[i]));
    return wait_seconds_;
  }

  std::vector<Expected<FileResponse>> take_results() { return std::move(results_); }

 private:
  HttpRequest request_of(const Pending& one) const {
    const FileRequest& request = requests_[one.index];
    const bool at_home = origin_of(one.url) == origin_of(request.url);
    return {one.url, at_home ? token_ : std::string(), request.range, request.most_bytes};
  }

  void take(Pending one, HttpOutcome outcome) {
    if (!outcome.response) {
      const std::string why = outcome.failure;
      try_again(std::move(one), why, std::nullopt);
    } else if (is_redirect(outcome.response->status)) {
      follow(std::move(one), *std::move(outcome.response));
    } else if (passes_with_time(outcome.response->status)) {
      const std::string why = fmt::format("the answer is status {}", outcome.response->status);
      try_again(std::move(one), why, parse_count(outcome.response->fields.find("Retry-After")));
    } else {
      finish(std::move(one), *std::move(outcome.response));
    }
  }

  void try_again(Pending one, const std::string& why, std::optional<std::int64_t> asked_seconds) {
    ++one.tries;
    if (asked_seconds && *asked_seconds > kLongestWait) {
      fail_at(one, fmt::format("{}; it asks to come again in {} s; do so, or set HF_TOKEN", why, *asked_seconds));
      return;
    }
    if (one.tries >= kMostTries) {
      fail_at(one, fmt::format("{}, in {} tries; try later, or set HF_ENDPOINT to a mirror", why, one.tries));
      return;
    }
    const double own = kFirstWait * static_cast<double>(1 << (one.tries - 1));
    wait_seconds_ = std::max(wait_seconds_, asked_seconds ? static_cast<double>(*asked_seconds) : own);
    one.url = requests_[one.index].url;
    one.redirects = 0;
    one.hub.reset();
    pending_.push_back(std::move(one));
  }

  void follow(Pending one, HttpResponse response) {
    std::string to = resolve_location(one.url, response.fields.find("Location"));
    if (to.empty() || ++one.redirects > kMostRedirects) {
      fail_at(one, to.empty() ? "is redirected to no address; report it to whoever runs the server"
                              : "is redirected without end; report it to whoever runs the server");
      return;
    }
    if (!one.hub || origin_of(one.url) == origin_of(requests_[one.index].url)) one.hub = std::move(response.fields);
    one.url = std::move(to);
    pending_.push_back(std::move(one));
  }

  void finish(Pending one, HttpResponse response) {
    FileResponse out;
    out.status = response.status;
    const bool at_home = !one.hub || origin_of(one.url) == origin_of(requests_[one.index].url);
    out.hub = at_home ? response.fields : *std::move(one.hub);
    out.last = std::move(response.fields);
    out.body = std::move(response.body);
    out.cut = response.cut;
    results_[one.index] = std::move(out);
  }

  void fail_at(const Pending& one, std::string message) {
    results_[one.index] = fail(ErrorCode::io, one.url.substr(0, one.url.find('?')), std::move(message));
  }

  Transport& transport_;
  const std::string& token_;
  std::span<const FileRequest> requests_;
  std::vector<Pending> pending_;
  std::vector<Expected<FileResponse>> results_;
  double wait_seconds_ = 0;
};

}  // namespace

std::vector<Expected<FileResponse>> fetch_files(Transport& transport, const std::string& token,
                                                std::span<const FileRequest> requests, const Wait& wait) {
  Batch batch(transport, token, requests);
  while (!batch.done()) {
    const double seconds = batch.round();
    if (seconds > 0 && !batch.done()) wait(seconds);
  }
  return batch.take_results();
}

void wait_really(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace ullage::hub
