// An HTTP/1.1 server: one thread that reads requests, watches clients and writes answers. What a request means is decided by two functions
// of the caller; everything about sockets, framing, TLS, limits and deadlines is here. Boost.Asio and OpenSSL stay behind http_server.cc.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "http/http_message.h"

namespace espalier {

struct HttpLimits {
  size_t max_header_bytes = size_t{32} << 10;   // request line and headers: 431 beyond
  size_t max_body_bytes = size_t{32} << 20;     // 413 beyond, before the body is read where its length is announced
  size_t max_connections = 1024;                // accepted at once; more wait in the listen queue
  size_t max_unsent_bytes = size_t{16} << 20;   // of a stream that its client does not read: the next `write` drops the connection
  std::chrono::milliseconds header_timeout{10'000};  // first byte of a request to the end of its headers: 408
  std::chrono::milliseconds body_timeout{60'000};    // end of headers to end of body: 408
  std::chrono::milliseconds idle_timeout{120'000};   // between two requests of a connection: closed
  std::chrono::milliseconds send_timeout{30'000};    // without any progress in writing: the client counts as gone
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";  // numeric address or name, of IPv4 or IPv6
  uint16_t port = 8080;            // 0: any free one
  std::string tls_certificate = {};  // PEM files, a chain and its key; both or none
  std::string tls_key = {};
  HttpLimits limits = {};
};

// What is sent into a stream when nothing else was for a while.
struct StreamFiller {
  std::string bytes = {};                        // empty: nothing
  std::chrono::milliseconds after{0};
};

// One request and the answer to it. Every member may be called from every thread; calls take effect in order. Dropping the last
// reference without an answer answers 500. Answers to a client that has gone are discarded.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual const HttpRequest& request() const = 0;

  // The whole answer, once, instead of a stream.
  virtual void respond(HttpResponse response) = 0;

  // A stream: head at once (`head.body` is its first chunk if not empty), then each `write` as one chunk, sent the moment the socket takes
  // it; `finish` ends it. An HTTP/1.0 client gets the bytes unchunked and the end of the connection.
  virtual void begin_stream(HttpResponse head, StreamFiller filler = {}) = 0;
  virtual void write(std::string bytes) = 0;
  virtual void finish() = 0;

  // The client closed its connection, or the server is stopping for good: nothing more will be sent. `callback` runs once on the server's
  // thread, at once if that has happened already; never after the answer was sent whole. It must not hold the exchange, which would keep itself.
  virtual bool gone() const = 0;
  virtual void on_gone(std::function<void()> callback) = 0;

  // Runs on the server's thread, after what was posted before, also when the client has gone; not once the server is destroyed. For work of
  // microseconds that belongs to this exchange.
  virtual void post(std::function<void()> task) = 0;
};

// Looks at a request whose body has not been read. An answer refuses it: it is sent, the body is not read, the connection closed.
using HttpGate = std::function<std::optional<HttpResponse>(const HttpRequest& head)>;
// Takes a whole request. Called on the server's thread: longer work belongs elsewhere. An exception that escapes answers 500.
using HttpHandler = std::function<void(std::shared_ptr<HttpExchange> exchange)>;
// Makes the answer to what never becomes a request (400, 408, 413, 431, 500, 501, 505), in the caller's shape of errors.
using HttpErrorPage = std::function<HttpResponse(int status, std::string_view message)>;

struct HttpCallbacks {
  HttpGate gate;          // may be empty
  HttpHandler handler;
  HttpErrorPage error_page;  // may be empty: text/plain
};

struct HttpServerStats {
  int64_t connections_accepted = 0;
  int64_t connections_open = 0;
  int64_t requests = 0;
  int64_t refused = 0;   // answered by gate or error page
};

class HttpServer {
 public:
  // Listens before it returns. Errors: kIo (address in use, no such host: names both), kInvalidArgument (certificate or key: names the file).
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options, HttpCallbacks callbacks);
  virtual ~HttpServer() = default;  // stops at once

  virtual uint16_t port() const = 0;
  virtual HttpServerStats stats() const = 0;

  // Accepts nothing more, closes idle connections, and waits up to `grace` for answers under way (they say Connection: close where
  // their head is not out yet); what is left then counts as gone. Returns true if nothing was cut off.
  virtual bool stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace espalier
