// The bytes of an answer: its head, and the chunks of a stream. Nothing that a caller gives can end a header or begin another: such headers are
// left out and logged. Free functions over a string that is appended to.
#pragma once

#include <string>
#include <string_view>

#include "http/http_message.h"

namespace espalier {

enum class BodyFraming {
  kLength,      // Content-Length: that of `body`, also where the body is not sent (HEAD)
  kChunked,
  kUntilClose,  // HTTP/1.0: the end of the connection ends the body
  kNone,        // statuses that have no body
};
enum class ConnectionOption {
  kNone,       // what the version implies
  kClose,      // the server closes after this answer
  kKeepAlive,  // said to HTTP/1.0 clients that asked
};

std::string_view reason_phrase(int status);
bool has_body(int status);  // not 1xx, 204, 304

void append_head(std::string& out, const HttpResponse& response, BodyFraming framing, ConnectionOption option);
void append_chunk(std::string& out, std::string_view bytes);  // `bytes` is not empty: an empty chunk is the last
void append_last_chunk(std::string& out);

}  // namespace espalier
