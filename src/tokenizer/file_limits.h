// What a tokenizer file may hold at most. Far above every published tokenizer; below what would exhaust memory or overflow a packed key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/utf8.h"

namespace espalier {

inline constexpr size_t kMaxTokenizerFileBytes = size_t{64} << 20;
inline constexpr size_t kMaxTokens = size_t{1} << 22;         // ids fit in 22 bits
inline constexpr size_t kMaxMerges = (size_t{1} << 20) - 1;   // ranks fit in 20 bits with one value to spare
inline constexpr size_t kMaxTokenBytes = 4096;

// A token or value of the file for an error message: as JSON, on one line, cut short.
inline std::string excerpt(const Json& value) {
  std::string text = dump_json(value);
  constexpr size_t kMaxBytes = 80;
  if (text.size() <= kMaxBytes) return text;
  text.resize(kMaxBytes);
  text.resize(kMaxBytes - incomplete_utf8_suffix(text));
  return text + "...";
}

}  // namespace espalier
