// Errors as the OpenAI API shapes them. Plain data.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "http/http_message.h"

namespace espalier {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param = {};  // the field at fault; empty: null
  std::string code = {};   // stable, for programs; empty: null
};

// {"error":{"message","type","param","code"}}
Json to_json(const ApiError& error);
// The same as an answer of its own.
HttpResponse to_response(const ApiError& error);

// The request's own fault. Messages of the form "field: ..." name the field.
ApiError invalid_request(std::string message);
// What a request meets before it is queued (parsing, rendering): its own fault, whatever limit it ran into.
ApiError error_of_request(const Error& error);
// What `Engine::submit` and the stream of a request return. `context_length` goes into the message that agents look for.
ApiError error_of_engine(const Error& error, int64_t context_length);

// The answer to what never becomes a request: bad framing, a body too large, a timeout.
HttpResponse error_page(int status, std::string_view message);

}  // namespace espalier
