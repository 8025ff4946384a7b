#include "tokenizer/byte_level.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace espalier {
namespace {

constexpr uint32_t kShiftedFrom = 256;
constexpr uint32_t kAlphabetEnd = kShiftedFrom + 68;

constexpr bool stands_for_itself(uint32_t byte) { return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174; }

struct Alphabet {
  std::array<uint16_t, 256> character{};
  std::array<int16_t, kAlphabetEnd> byte{};  // -1: not in the alphabet
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  uint32_t next_shifted = kShiftedFrom;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t character = stands_for_itself(byte) ? byte : next_shifted++;
    alphabet.character[byte] = static_cast<uint16_t>(character);
    alphabet.byte[character] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::optional<std::string> bytes_of_spelling(std::string_view spelled) {
  std::string bytes;
  bytes.reserve(spelled.size());
  for (size_t i = 0; i < spelled.size();) {
    const CodePoint point = decode_utf8(spelled, i);
    if (!point.valid || point.value >= kAlphabetEnd || kAlphabet.byte[point.value] < 0) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.byte[point.value]);
    i += point.length;
  }
  return bytes;
}

std::string spelling_of_bytes(std::string_view bytes) {
  std::string spelled;
  for (const char byte : bytes) append_utf8(spelled, kAlphabet.character[static_cast<uint8_t>(byte)]);
  return spelled;
}

}  // namespace espalier
