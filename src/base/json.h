// JSON documents with their key order kept. Wraps nlohmann::ordered_json; parsing never throws, has a depth and a size limit, and
// reports where it failed. Building is linear in the text, also for objects of many keys; looking one up by name is not: iterate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espalier {

using Json = nlohmann::ordered_json;

enum class DuplicateKeys {
  kLastWins,  // in place of the first
  kError,
};

struct JsonLimits {
  size_t max_bytes = size_t{256} << 20;
  int max_depth = 128;
  DuplicateKeys duplicate_keys = DuplicateKeys::kLastWins;
};

// Parses one whole document (UTF-8, no trailing text, no comments). Integers
// outside 64 bits become floats; numbers that no finite double holds are errors.
// `name` names the source in the error: "config.json: not valid JSON at byte 17, near '...'".
Result<Json> parse_json(std::string_view text, std::string_view name, const JsonLimits& limits = {});
// Reads and parses a file.
Result<Json> load_json(const std::string& path, const JsonLimits& limits = {});

// Compact text: separators "," and ":"; non-ASCII raw; invalid UTF-8 replaced by U+FFFD; floats by shortest round trip with at
// least one of ".", "e" (1.0 stays 1.0). Never throws.
std::string dump_json(const Json& value);

// Typed look-ups for configuration files: the error names `where.key`, what was expected and what was found.
Result<int64_t> json_int(const Json& object, std::string_view key, std::string_view where);
Result<double> json_number(const Json& object, std::string_view key, std::string_view where);
Result<bool> json_bool(const Json& object, std::string_view key, std::string_view where);
Result<std::string> json_string(const Json& object, std::string_view key, std::string_view where);

}  // namespace espalier
