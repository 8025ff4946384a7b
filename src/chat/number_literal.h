// Numbers as models write them (Python's syntax, which holds JSON's) to JSON numbers, digit by digit: nothing is rounded. What no finite
// double holds is refused, since JSON readers refuse it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace espalier {

// JSON's own grammar, exactly.
bool is_json_number(std::string_view text);

// As int(text): a sign, leading zeros and whitespace around are allowed. "+3" -> 3, "007" -> 7; empty for "3.0".
std::optional<std::string> json_integer(std::string_view text);
// As float(text), but what is integral becomes an integer: "12.0" -> 12, "1e3" -> 1000. Other literals stay as they are.
std::optional<std::string> json_number(std::string_view text);
// A literal in Python source: the kind stays, so 12.0 is a float. ".5" -> 0.5, "1_000" -> 1000; empty for "007".
std::optional<std::string> json_from_python_number(std::string_view text);

}  // namespace espalier
