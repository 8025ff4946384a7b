// One value that a model wrote, as JSON or as a Python literal, to JSON text: compact, strings as literal UTF-8, numbers as written.
// A reader of literals and nothing else: no name is looked up and nothing is evaluated. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace espalier {

enum class LiteralDialect {
  kJson,    // strict
  kPython,  // quotes of both kinds, True / False / None as well as JSON's words, tuples, trailing commas, line breaks inside strings
};

inline constexpr int kMaxLiteralDepth = 100;

// Empty if `text` (UTF-8) is anything else than one value with whitespace around it, or nests deeper than kMaxLiteralDepth.
std::optional<std::string> json_from_literal(std::string_view text, LiteralDialect dialect);

// A string as JSON.
std::string json_quoted(std::string_view text);

}  // namespace espalier
