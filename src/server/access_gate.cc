#include "server/access_gate.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace espalier {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// "name:8080" and "[::1]:8080" without the port.
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, std::min(host.find(']'), host.size() - 1) + 1);
  return host.substr(0, host.rfind(':') == std::string_view::npos ? host.size() : host.rfind(':'));
}

bool is_address(std::string_view name) {
  if (name.starts_with('[') && name.ends_with(']')) return true;
  return !name.empty() && name.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool contains(const std::vector<std::string>& list, std::string_view value) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& entry) { return entry == "*" || lower(entry) == value; });
}

}  // namespace

bool equal_in_constant_time(std::string_view given, std::string_view secret) {
  // The time depends on the length of what was given, which its sender knows.
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char other = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

bool AccessGate::host_allowed(std::string_view host) const {
  const std::string name = lower(without_port(host));
  return name == "localhost" || name.ends_with(".localhost") || is_address(name) || contains(rules_.allowed_hosts, name);
}

bool AccessGate::origin_allowed(std::string_view origin, std::string_view host) const {
  const std::string name = lower(origin);
  const std::string own = lower(host);
  return name == "http://" + own || name == "https://" + own || contains(rules_.cors_origins, name);
}

bool AccessGate::key_accepted(const HttpRequest& head) const {
  const std::string* authorization = head.header("Authorization");
  constexpr std::string_view kBearer = "bearer ";
  if (authorization == nullptr || lower(authorization->substr(0, kBearer.size())) != kBearer) return false;
  const std::string_view given = std::string_view(*authorization).substr(kBearer.size());
  bool accepted = false;
  for (const std::string& key : rules_.api_keys) accepted |= equal_in_constant_time(given, key);  // all of them, whichever fits
  return accepted;
}

std::optional<ApiError> AccessGate::refuse(const HttpRequest& head) const {
  const std::string* host = head.header("Host");
  if (host != nullptr && !host_allowed(*host)) {
    return ApiError{.status = 403, .message = "this host name is not served here; --allowed-host adds it", .type = "permission_error", .code = "host_not_allowed"};
  }
  const std::string* origin = head.header("Origin");
  if (origin != nullptr && !origin_allowed(*origin, host == nullptr ? std::string_view() : *host)) {
    return ApiError{.status = 403, .message = "pages of this origin may not use this server; --cors-origin adds it", .type = "permission_error", .code = "origin_not_allowed"};
  }
  if (rules_.api_keys.empty() || head.path == "/health" || head.method == "OPTIONS" || key_accepted(head)) return std::nullopt;
  const bool given = head.header("Authorization") != nullptr;
  return ApiError{.status = 401,
                  .message = given ? "the API key is wrong" : "an API key is needed: Authorization: Bearer KEY",
                  .type = "authentication_error",
                  .code = "invalid_api_key"};
}

std::vector<HttpHeader> AccessGate::cors_headers(const HttpRequest& head) const {
  const std::string* origin = head.header("Origin");
  if (origin == nullptr || !contains(rules_.cors_origins, lower(*origin))) return {};
  return {{"Access-Control-Allow-Origin", *origin}, {"Vary", "Origin"}};
}

HttpResponse AccessGate::preflight(const HttpRequest& head) const {
  HttpResponse response{.status = 204, .content_type = "", .headers = cors_headers(head)};
  response.headers.push_back({"Allow", "GET, POST, OPTIONS"});
  if (head.header("Access-Control-Request-Method") != nullptr) {
    response.headers.push_back({"Access-Control-Allow-Methods", "GET, POST, OPTIONS"});
    response.headers.push_back({"Access-Control-Allow-Headers", "Authorization, Content-Type, X-Session-ID"});
    response.headers.push_back({"Access-Control-Max-Age", "600"});
  }
  return response;
}

}  // namespace espalier
