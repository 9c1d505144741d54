#include "support/loopback_server.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <sstream>

namespace ullage::hub {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Up to the empty line; the requests of the tests have no body.
std::string read_head(int connection) {
  std::string head;
  char buffer[4096];
  while (head.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = recv(connection, buffer, sizeof buffer, 0);
    if (got <= 0) break;
    head.append(buffer, static_cast<std::size_t>(got));
  }
  return head;
}

Received parse(const std::string& head) {
  Received out;
  std::istringstream lines(head);
  std::string method;
  lines >> method >> out.path;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) out.fields[lower(line.substr(0, colon))] = line.substr(colon + 2);
  }
  return out;
}

// Bytes that went out before the other side had enough.
std::size_t send_all(int connection, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t now = send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) break;
    sent += static_cast<std::size_t>(now);
  }
  return sent;
}

}  // namespace

std::string Received::field(const std::string& name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : found->second;
}

Reply ranged(const Received& request, const std::string& body) {
  const std::string range = request.field("range");
  if (range.empty()) return {200, {}, body, {}, 0};
  std::size_t first = 0;
  std::size_t last = 0;
  char dash = 0;
  std::istringstream(range.substr(range.find('=') + 1)) >> first >> dash >> last;
  if (first >= body.size()) return {416, {{"Content-Range", fmt::format("bytes */{}", body.size())}}, "", {}, 0};
  last = std::min(last, body.size() - 1);
  return {206,
          {{"Content-Range", fmt::format("bytes {}-{}/{}", first, last, body.size())}},
          body.substr(first, last - first + 1),
          {},
          0};
}

LoopbackServer::LoopbackServer(Handler handler) : handler_(std::move(handler)) {
  socket_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(socket_, 64) != 0) std::abort();
  getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { accept_all(); });
}

LoopbackServer::~LoopbackServer() {
  shutdown(socket_, SHUT_RDWR);
  close(socket_);
  accepting_.join();
  for (std::thread& one : answering_) one.join();
}

std::string LoopbackServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

std::vector<Received> LoopbackServer::received() const {
  const std::lock_guard lock(mutex_);
  return received_;
}

void LoopbackServer::accept_all() {
  while (true) {
    const int connection = accept(socket_, nullptr, nullptr);
    if (connection < 0) return;
    answering_.emplace_back([this, connection] { answer(connection); });
  }
}

void LoopbackServer::answer(int connection) {
  const Received request = parse(read_head(connection));
  if (!request.path.empty()) {
    {
      const std::lock_guard lock(mutex_);
      received_.push_back(request);
    }
    const Reply reply = handler_(request);
    if (reply.seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(reply.seconds));
    std::string head = fmt::format("HTTP/1.1 {} Status\r\nConnection: close\r\nContent-Length: {}\r\n", reply.status,
                                   reply.claimed_length.value_or(static_cast<std::int64_t>(reply.body.size())));
    for (const auto& [name, value] : reply.fields) head += fmt::format("{}: {}\r\n", name, value);
    send_all(connection, head + "\r\n");
    body_bytes_sent_ += static_cast<std::int64_t>(send_all(connection, reply.body));
  }
  shutdown(connection, SHUT_RDWR);
  close(connection);
}

}  // namespace ullage::hub
