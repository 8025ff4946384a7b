#include "http/http_message.h"

#include <algorithm>

namespace espalier {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

const std::string* find(const std::vector<HttpHeader>& headers, std::string_view name) {
  for (const HttpHeader& header : headers) {
    if (same_header_name(header.name, name)) return &header.value;
  }
  return nullptr;
}

}  // namespace

bool same_header_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

const std::string* HttpRequest::header(std::string_view name) const { return find(headers, name); }

const std::string* HttpResponse::header(std::string_view name) const { return find(headers, name); }

}  // namespace espalier
