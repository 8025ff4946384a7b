// A client made of a bare socket: sends what it is told to and reports the bytes that come back, so that tests see what is on the wire.
#pragma once

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace espalier {

constexpr std::chrono::milliseconds kPatience{20'000};  // for what has to come; sanitizers are slow

struct RawAnswer {
  int status = 0;  // 0: the connection ended before the headers did
  std::string head;
  std::string body;
  std::vector<std::string> chunks;
  bool complete = false;
};

class RawClient {
 public:
  explicit RawClient(uint16_t port) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connect_to(port);
  }
  // For a test that prepares the socket first.
  explicit RawClient(int socket) : socket_(socket) {}
  RawClient(RawClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)), received_(std::move(other.received_)) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { close(); }

  void connect_to(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0) << std::strerror(errno);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  int socket() const { return socket_; }

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  void reset() {  // a close that the other side sees as an error
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }

  // False once the other side takes nothing any more.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // One receive into received(). False at the end of the connection, or when nothing came in time.
  bool receive(std::chrono::milliseconds patience = kPatience) {
    pollfd ready{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(patience.count())) <= 0) return false;
    char bytes[65536];
    const ssize_t num_bytes = ::recv(socket_, bytes, sizeof bytes, 0);
    ended_ = num_bytes == 0;
    reset_ = num_bytes < 0;
    if (num_bytes > 0) received_.append(bytes, static_cast<size_t>(num_bytes));
    return num_bytes > 0;
  }

  // Everything up to and including `end`; what had come if the connection ends first.
  std::string read_until(std::string_view end) {
    size_t at;
    while ((at = received_.find(end)) == std::string::npos) {
      if (!receive()) return std::exchange(received_, {});
    }
    return take(at + end.size());
  }

  std::string read_bytes(size_t num_bytes) {
    while (received_.size() < num_bytes && receive()) {
    }
    return take(std::min(num_bytes, received_.size()));
  }

  std::string read_to_end() {
    while (receive()) {
    }
    EXPECT_TRUE(ended_ || reset_) << "the connection stays open";
    return std::exchange(received_, {});
  }

  bool is_silent_for(std::chrono::milliseconds time) { return received_.empty() && !receive(time) && !ended_ && !reset_; }
  const std::string& received() const { return received_; }
  bool ended_cleanly() const { return ended_; }

  RawAnswer read_head() {
    RawAnswer answer;
    answer.head = read_until("\r\n\r\n");
    if (answer.head.starts_with("HTTP/1.1 ") && answer.head.ends_with("\r\n\r\n")) answer.status = std::atoi(answer.head.c_str() + 9);
    return answer;
  }

  // One whole answer, framed by length or by chunks.
  RawAnswer read_answer() {
    RawAnswer answer = read_head();
    if (answer.status == 0) return answer;
    if (answer.head.find("\r\nTransfer-Encoding: chunked\r\n") != std::string::npos) {
      for (;;) {
        const std::string line = read_until("\r\n");
        if (!line.ends_with("\r\n")) return answer;
        const size_t size = std::strtoul(line.c_str(), nullptr, 16);
        const std::string chunk = read_bytes(size + 2);
        if (chunk.size() != size + 2) return answer;
        EXPECT_EQ(chunk.substr(size), "\r\n");
        if (size == 0) break;
        answer.chunks.push_back(chunk.substr(0, size));
        answer.body += answer.chunks.back();
      }
      answer.complete = true;
      return answer;
    }
    const size_t at = answer.head.find("\r\nContent-Length: ");
    const size_t length = at == std::string::npos ? 0 : std::strtoul(answer.head.c_str() + at + 18, nullptr, 10);
    answer.body = read_bytes(length);
    answer.complete = answer.body.size() == length;
    return answer;
  }

 private:
  std::string take(size_t num_bytes) {
    std::string taken = received_.substr(0, num_bytes);
    received_.erase(0, num_bytes);
    return taken;
  }

  int socket_ = -1;
  std::string received_;
  bool ended_ = false;
  bool reset_ = false;
};

}  // namespace espalier
