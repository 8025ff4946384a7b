// The byte-level alphabet: in a tokenizer file each byte of a token is written as one printable character.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace espalier {

// Bytes 33-126, 161-172 and 174-255 stand for themselves (as code points); the other 68, ascending, are U+0100, U+0101, ...
// Returns the bytes that `spelled` (UTF-8) stands for; nothing if a character is not in the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelled);
// The inverse, for any bytes.
std::string spelling_of_bytes(std::string_view bytes);

}  // namespace espalier
