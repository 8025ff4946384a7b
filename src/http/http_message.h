// HTTP messages as plain data, for the server and the client alike.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// Names of headers are the same whatever the case of their letters.
bool same_header_name(std::string_view a, std::string_view b);

struct HttpHeader {
  std::string name;
  std::string value;
};

struct HttpRequest {
  std::string method = {};               // "GET", as sent
  std::string path = {};                 // before the first '?', as sent: not percent-decoded
  std::string query = {};                // behind it
  std::vector<HttpHeader> headers = {};  // in order; names as sent
  std::string body = {};
  std::string peer = {};                 // address and port of the client; empty on the client's side

  // The first header of that name, whatever its case; nullptr if there is none.
  const std::string* header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<HttpHeader> headers = {};  // beyond Content-Type and what frames the message
  std::string body = {};

  const std::string* header(std::string_view name) const;
};

}  // namespace espalier
