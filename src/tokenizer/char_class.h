// The character classes that pre-tokeniser patterns distinguish, as the reference regex engine sees them. Immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace espalier {

enum class CharClass : uint8_t {
  kOther,
  kLetter,  // \p{L}
  kMark,    // \p{M}
  kNumber,  // \p{N}
  kSpace,   // \s, which is Unicode's White_Space
};

inline constexpr size_t kNumCodePoints = 0x110000;
using CharClassTable = std::array<CharClass, kNumCodePoints>;

// Class of every code point, built on the first call. Unassigned code points are kOther.
const CharClassTable& char_classes();

}  // namespace espalier
