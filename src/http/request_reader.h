// Cuts the bytes of one connection into requests: what a server believes about framing is decided here, and strictly, because a proxy in front
// of it may believe otherwise. Two lengths, a length beside an encoding, an encoding other than chunked, two hosts: all refused. Memory grows
// with the bytes that arrived, never with those announced. Thread-compatible. Boost.Beast's parser stays behind request_reader.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "http/http_message.h"

namespace espalier {

class RequestReader {
 public:
  enum class Step {
    kMore,     // all that can be used was used; what is left in `bytes` has to come again, with more behind it
    kHead,     // the headers are complete and in `head()`; once for each request
    kRequest,  // so is the body: `take()` it, then read on
    kFault,    // no request; nothing on this connection can be understood any more
  };
  struct Fault {
    int status = 400;
    std::string message;
  };

  RequestReader(size_t max_header_bytes, size_t max_body_bytes, std::string peer);  // `peer`: of every request
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Takes bytes from the front of `bytes` up to the next step. To be called until kMore or kFault; after kHead even with no bytes left.
  Step read(std::string_view& bytes);

  bool started() const;  // a part of a request was taken
  const HttpRequest& head() const;
  const Fault& fault() const;

  // Valid from kHead to take().
  bool keep_alive() const;          // the client will read further answers on this connection
  bool understands_chunks() const;  // HTTP/1.1
  bool wants_continue() const;      // Expect: 100-continue, and no byte of the body was taken yet

  HttpRequest take();

 private:
  class Parser;
  Step failed(Fault fault);
  void begin_request();

  size_t max_header_bytes_;
  size_t max_body_bytes_;
  std::string peer_;
  size_t head_bytes_ = 0;  // of the request being read, taken so far
  bool head_reported_ = false;
  Fault fault_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace espalier
