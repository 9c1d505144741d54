// A web server on this machine that answers what a test says, down to the byte.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ullage::hub {

struct Received {
  std::string path;  // with what stands behind "?"
  std::map<std::string, std::string> fields;
  std::string field(const std::string& name) const;  // by its name in small letters; empty: none
};

struct Reply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;
  std::optional<std::int64_t> claimed_length;  // in place of the body's own
  double seconds = 0;                          // of silence before anything is sent
};

// "bytes=0-65535" of a body, as a server with ranges answers it; without a range, everything.
Reply ranged(const Received& request, const std::string& body);

class LoopbackServer {
 public:
  using Handler = std::function<Reply(const Received&)>;

  explicit LoopbackServer(Handler handler);
  ~LoopbackServer();

  std::string url() const;
  std::vector<Received> received() const;
  std::int64_t body_bytes_sent() const { return body_bytes_sent_; }

 private:
  void accept_all();
  void answer(int connection);

  Handler handler_;
  int socket_ = -1;
  int port_ = 0;
  std::atomic<std::int64_t> body_bytes_sent_{0};
  mutable std::mutex mutex_;
  std::vector<Received> received_;
  std::vector<std::thread> answering_;
  std::thread accepting_;
};

}  // namespace ullage::hub
