#include "chat/call_parser.h"

#include <algorithm>

namespace espalier {
namespace {

constexpr size_t kMaxNameBytes = 256;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("_.:/-").find(c) != std::string_view::npos;
}

}  // namespace

bool is_function_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && std::all_of(name.begin(), name.end(), is_name_character);
}

}  // namespace espalier
