// How Python prints values: str(), repr(), the shortest text of a float; and how it reads numbers back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/jinja/value.h"

namespace espalier::jinja {

std::string float_repr(double value);
std::string integer_text(Integer value);
// int(text, base) of Python: surrounding white space, a sign and underscores allowed. Nothing if it is not one or beyond Integer.
std::optional<Integer> parse_integer(std::string_view text, int base);
// float(text) of Python, including "inf" and "nan".
std::optional<double> parse_float(std::string_view text);

// str(value): the characters of a string are appended as they are.
void append_str(TextBuilder& out, const Value& value);
void append_repr(TextBuilder& out, const Value& value, int depth = 0);
// str(value) as a text; a string is returned without a copy.
Text to_text(Arena& arena, const Value& value);

// The dialect of json.dumps that chat templates rely on: key order kept, ", " and ": ", nothing escaped that need not be.
struct JsonStyle {
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  std::string indent;  // one level; used if has_indent
  bool has_indent = false;
  bool sort_keys = false;
  bool ascii_only = false;
};
void append_json(TextBuilder& out, const Value& value, const JsonStyle& style, int depth = 0);

}  // namespace espalier::jinja
