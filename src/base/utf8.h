// UTF-8: decoding one code point at a time, validity, and repair as Python's errors="replace" does it (one U+FFFD per maximal subpart).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace espalier {

struct CodePoint {
  uint32_t value = 0;   // U+FFFD where the bytes are not valid
  uint32_t length = 0;  // bytes consumed, >= 1
  bool valid = false;
};

// Decodes the code point that starts at `offset` (< text.size()). Overlong forms, surrogates and values above U+10FFFF are invalid.
CodePoint decode_utf8(std::string_view text, size_t offset);
void append_utf8(std::string& out, uint32_t code_point);

bool is_valid_utf8(std::string_view text);
// Each maximal ill-formed subpart becomes one U+FFFD.
std::string replace_invalid_utf8(std::string_view text);
// Length of the longest suffix that is a proper prefix of some UTF-8 character, 0 to 3: what a stream must hold back.
size_t incomplete_utf8_suffix(std::string_view text);
// The longest beginning of at most `max_bytes` that cuts no character: what an error shows of a text.
std::string_view utf8_prefix(std::string_view text, size_t max_bytes);

}  // namespace espalier
