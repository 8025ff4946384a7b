// A server of raw sockets that does what a test tells it, connection by connection: for clients that must cope with anything. Runs on a
// thread of its own from construction to destruction; accepts as many connections as it has scripts, then refuses.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace espalier {

// The server's end of one connection. Nothing waits longer than ten seconds, so that a wrong client fails its test instead of hanging it.
class ScriptedPeer {
 public:
  explicit ScriptedPeer(int descriptor) : descriptor_(descriptor) {
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  virtual ~ScriptedPeer() = default;

  // One request, head and announced body; empty if the client has gone.
  std::string read_request() {
    std::string request;
    size_t whole = std::string::npos;
    while (request.size() < whole) {
      const std::string piece = read_some();
      if (piece.empty()) return {};
      request += piece;
      const size_t head = request.find("\r\n\r\n");
      if (whole != std::string::npos || head == std::string::npos) continue;
      const size_t length = request.find("Content-Length: ");
      whole = head + 4 + (length < head ? std::stoul(request.substr(length + 16)) : 0);
    }
    return request;
  }

  virtual void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  // Each piece in a segment of its own.
  void send_in_pieces(const std::vector<std::string>& pieces) {
    for (const std::string& piece : pieces) {
      send(piece);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  // Until the client closes, or the ten seconds are over.
  void wait_until_closed() {
    while (!read_some().empty()) {
    }
  }

  // The connection ends with a reset instead of an orderly end.
  void reset_on_close() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }

 protected:
  virtual std::string read_some() {
    char buffer[16384];
    const ssize_t got = ::recv(descriptor_, buffer, sizeof(buffer), 0);
    return got <= 0 ? std::string() : std::string(buffer, static_cast<size_t>(got));
  }
  int descriptor_;
};

class ScriptedServer {
 public:
  using Script = std::function<void(ScriptedPeer&)>;

  // Each connection runs its script and is closed when that returns.
  explicit ScriptedServer(std::vector<Script> scripts) : ScriptedServer(Sockets(raw_connections(std::move(scripts)))) {}

  // For connections that need more than a plain socket: each gets the accepted descriptor, which stays the server's.
  static ScriptedServer of_sockets(std::vector<std::function<void(int)>> connections) { return ScriptedServer(Sockets(std::move(connections))); }

  ~ScriptedServer() {
    stopping_ = true;
    thread_.join();
  }

  int port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int accepted() const { return accepted_; }

 private:
  struct Sockets {
    explicit Sockets(std::vector<std::function<void(int)>> each) : connections(std::move(each)) {}
    std::vector<std::function<void(int)>> connections;
  };

  explicit ScriptedServer(Sockets sockets) : connections_(std::move(sockets.connections)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    const bool listening = ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(listener_, 8) == 0 &&
                           ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    port_ = listening ? ntohs(address.sin_port) : 0;
    thread_ = std::thread([this] { serve(); });
  }

  static std::vector<std::function<void(int)>> raw_connections(std::vector<Script> scripts) {
    std::vector<std::function<void(int)>> connections;
    for (Script& script : scripts) {
      connections.push_back([script = std::move(script)](int descriptor) {
        ScriptedPeer peer(descriptor);
        script(peer);
      });
    }
    return connections;
  }

  void serve() {
    for (const auto& connection : connections_) {
      const int descriptor = accept_one();
      if (descriptor < 0) break;
      ++accepted_;
      connection(descriptor);
      ::close(descriptor);
    }
    ::close(listener_);
  }

  int accept_one() {
    pollfd waiting{.fd = listener_, .events = POLLIN, .revents = 0};
    while (!stopping_) {
      if (::poll(&waiting, 1, 20) == 1) return ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    }
    return -1;
  }

  std::vector<std::function<void(int)>> connections_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> accepted_ = 0;
  std::thread thread_;
};

}  // namespace espalier
