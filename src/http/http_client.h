// A small HTTP/1.1 client for one server: one connection that is kept alive, one request at a time, answers read as they arrive. Not
// thread-safe. Boost.Beast stays behind http_client.cc.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/http_message.h"

namespace espalier {

struct HttpClientOptions {
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds silence_timeout{600'000};  // without a byte from the server
  size_t max_answer_bytes = size_t{256} << 20;
  std::string ca_file = {};                            // PEM; empty: the system's certificates
  const std::atomic<bool>* interrupted = nullptr;      // looked at several times a second; once true, `send` returns kCancelled
};

class HttpClient {
 public:
  // "http://host[:port][/prefix]" or https. kInvalidArgument for anything else, and for a `ca_file` without certificates. Connects on first
  // use.
  static Result<std::unique_ptr<HttpClient>> create(std::string_view url, const HttpClientOptions& options = {});
  virtual ~HttpClient() = default;

  // `request.path` is appended to the prefix of the URL. `on_body` sees the pieces of a body with status 200 as they arrive (`body` of the
  // answer is then empty); returning false ends the request with kCancelled and closes the connection. Other bodies come with the answer.
  // A kept connection that the server had closed meanwhile is replaced once, before any byte of an answer. Redirects are not followed; an
  // interim status (1xx) is the answer, because nothing here asks for one. Errors name the URL: kIo for a connection that cannot be made,
  // breaks off, is silent too long or brings no valid HTTP, kResourceExhausted beyond `max_answer_bytes`, kCancelled; kInvalidArgument,
  // before anything is sent, for a request that would break the framing.
  virtual Result<HttpResponse> send(const HttpRequest& request, const std::function<bool(std::string_view)>& on_body = {}) = 0;
};

}  // namespace espalier
