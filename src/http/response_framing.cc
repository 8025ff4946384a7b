#include "http/response_framing.h"

#include <algorithm>
#include <iterator>

#include "base/format.h"
#include "base/log.h"
#include "base/result.h"

namespace espalier {
namespace {

bool is_token(std::string_view name) {
  constexpr std::string_view kSymbols = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kSymbols.find(c) != std::string_view::npos;
  });
}

bool is_value(std::string_view value) {
  return std::none_of(value.begin(), value.end(), [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

// What append_head says itself: a second one would contradict it.
bool is_framing(std::string_view name) {
  constexpr std::string_view kNames[] = {"Connection", "Content-Length", "Content-Type", "Server", "Transfer-Encoding"};
  return std::any_of(std::begin(kNames), std::end(kNames), [&](std::string_view framing) { return same_header_name(name, framing); });
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  if (!is_token(name) || !is_value(value)) {
    log_error("http: header {} of an answer left out: it holds characters that are not allowed", is_token(name) ? name : "name");
    return;
  }
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 507: return "Insufficient Storage";
    default: return "Unknown";
  }
}

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

void append_head(std::string& out, const HttpResponse& response, BodyFraming framing, ConnectionOption option) {
  ESPALIER_CHECK(response.status >= 200 && response.status <= 599);
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {:03} {}\r\nServer: espalier\r\n", response.status, reason_phrase(response.status));
  if (framing != BodyFraming::kNone && !response.content_type.empty()) append_header(out, "Content-Type", response.content_type);
  for (const HttpHeader& header : response.headers) {
    if (is_framing(header.name)) {
      log_error("http: header {} of an answer left out: the server writes it", header.name);
    } else {
      append_header(out, header.name, header.value);
    }
  }
  if (framing == BodyFraming::kLength) fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", response.body.size());
  if (framing == BodyFraming::kChunked) out += "Transfer-Encoding: chunked\r\n";
  if (option == ConnectionOption::kClose) out += "Connection: close\r\n";
  if (option == ConnectionOption::kKeepAlive) out += "Connection: keep-alive\r\n";
  out += "\r\n";
}

void append_chunk(std::string& out, std::string_view bytes) {
  ESPALIER_CHECK(!bytes.empty());
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
  out.append(bytes).append("\r\n");
}

void append_last_chunk(std::string& out) { out += "0\r\n\r\n"; }

}  // namespace espalier
