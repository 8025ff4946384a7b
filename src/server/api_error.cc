#include "server/api_error.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace espalier {
namespace {

constexpr std::string_view kRetryAfterSeconds = "2";

// "messages[3].content: expected a string" begins with the field; a sentence does not.
std::string leading_field(std::string_view message) {
  const size_t colon = message.find(": ");
  if (colon == std::string_view::npos || colon == 0) return {};
  const std::string_view field = message.substr(0, colon);
  const auto part_of_a_path = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '[' || c == ']'; };
  return std::all_of(field.begin(), field.end(), part_of_a_path) ? std::string(field) : std::string();
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Json to_json(const ApiError& error) {
  return {{"error", {{"message", error.message}, {"type", error.type}, {"param", or_null(error.param)}, {"code", or_null(error.code)}}}};
}

HttpResponse to_response(const ApiError& error) {
  HttpResponse response{.status = error.status, .body = dump_json(to_json(error))};
  if (error.status == 429 || error.status == 503) response.headers.push_back({"Retry-After", std::string(kRetryAfterSeconds)});
  if (error.status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  return response;
}

ApiError invalid_request(std::string message) {
  std::string param = leading_field(message);
  return {.status = 400, .message = std::move(message), .param = std::move(param)};
}

ApiError error_of_request(const Error& error) {
  ApiError result = invalid_request(error.message);
  if (error.code == ErrorCode::kUnsupported) result.code = "unsupported_value";
  if (error.code == ErrorCode::kNotFound) {
    result.status = 404;
    result.code = "not_found";
  }
  if (error.code == ErrorCode::kInternal) {
    result.status = 500;
    result.type = "server_error";
    result.code = "internal_error";
  }
  return result;
}

ApiError error_of_engine(const Error& error, int64_t context_length) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported: return error_of_request(error);
    case ErrorCode::kContextLength:
      return {.status = 400,
              .message = format("This model's maximum context length is {} tokens: {}", context_length, error.message),
              .param = "messages",
              .code = "context_length_exceeded"};
    case ErrorCode::kResourceExhausted: return {.status = 429, .message = error.message, .type = "rate_limit_error", .code = "queue_full"};
    case ErrorCode::kCancelled: return {.status = 503, .message = error.message, .type = "server_error", .code = "shutting_down"};
    default: return {.status = 500, .message = error.message, .type = "server_error", .code = "internal_error"};
  }
}

HttpResponse error_page(int status, std::string_view message) {
  ApiError error{.status = status, .message = std::string(message)};
  if (status == 413) error.code = "request_too_large";
  if (status == 408) error.code = "request_timeout";
  if (status >= 500) error.type = "server_error";
  return to_response(error);
}

}  // namespace espalier
