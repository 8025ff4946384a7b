// Who may talk to the server, decided from the head of a request: Host (against pages that rebind a name to this machine), Origin (against
// pages of other sites), key. Immutable; callable from every thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "http/http_message.h"
#include "server/api_error.h"

namespace espalier {

struct AccessRules {
  std::vector<std::string> allowed_hosts;   // names beside localhost and addresses; "*": any
  std::vector<std::string> cors_origins;    // "https://app.example"; "*": any
  std::vector<std::string> api_keys;        // empty: no key is asked for
};

class AccessGate {
 public:
  explicit AccessGate(AccessRules rules) : rules_(std::move(rules)) {}

  // The answer that refuses, or nothing. /health needs no key; a preflight carries none and is answered by `preflight`.
  std::optional<ApiError> refuse(const HttpRequest& head) const;

  // Headers that let a page of an allowed origin read the answer; none without an Origin.
  std::vector<HttpHeader> cors_headers(const HttpRequest& head) const;
  // The answer to an OPTIONS request.
  HttpResponse preflight(const HttpRequest& head) const;

 private:
  bool host_allowed(std::string_view host) const;
  bool origin_allowed(std::string_view origin, std::string_view host) const;
  bool key_accepted(const HttpRequest& head) const;

  AccessRules rules_;
};

// Whether both are the same, in a time that tells nothing of where they differ.
bool equal_in_constant_time(std::string_view given, std::string_view secret);

}  // namespace espalier
