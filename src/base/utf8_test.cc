#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace espalier {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string replacements(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += kReplacement;
  return out;
}

std::string encode(uint32_t code_point) {
  std::string out;
  append_utf8(out, code_point);
  return out;
}

bool is_surrogate(uint32_t code_point) { return code_point >= 0xD800 && code_point < 0xE000; }

TEST(Utf8, EveryCodePointRoundTrips) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (is_surrogate(c)) continue;
    const std::string text = encode(c);
    const CodePoint decoded = decode_utf8(text, 0);
    ASSERT_TRUE(decoded.valid && decoded.value == c && decoded.length == text.size()) << std::hex << c;
  }
}

TEST(Utf8, LengthsChangeWhereUnicodeSaysSo) {
  EXPECT_EQ(encode(0x7F), "\x7F");
  EXPECT_EQ(encode(0x80), "\xC2\x80");
  EXPECT_EQ(encode(0x7FF), "\xDF\xBF");
  EXPECT_EQ(encode(0x800), "\xE0\xA0\x80");
  EXPECT_EQ(encode(0xFFFF), "\xEF\xBF\xBF");
  EXPECT_EQ(encode(0x10000), "\xF0\x90\x80\x80");
  EXPECT_EQ(encode(0x10FFFF), "\xF4\x8F\xBF\xBF");
}

TEST(Utf8, EverySurrogateIsInvalid) {
  for (uint32_t c = 0xD800; c < 0xE000; ++c) ASSERT_FALSE(is_valid_utf8(encode(c))) << std::hex << c;
}

TEST(Utf8, DecodesAtAnOffset) {
  const CodePoint decoded = decode_utf8("a\xE2\x82\xAC" "b", 1);
  EXPECT_EQ(decoded.value, 0x20ACu);
  EXPECT_EQ(decoded.length, 3u);
}

// The number of U+FFFD for each ill-formed sequence is that of the Unicode Standard 15.0, section 3.9 (substitution of maximal
// subparts), which Python's bytes.decode("utf-8", "replace") follows.
struct IllFormed {
  const char* name;
  std::string text;
  std::string repaired;
};
class Utf8Repair : public ::testing::TestWithParam<IllFormed> {};

TEST_P(Utf8Repair, ReplacesEachMaximalSubpartOnce) {
  EXPECT_FALSE(is_valid_utf8(GetParam().text));
  EXPECT_EQ(replace_invalid_utf8(GetParam().text), GetParam().repaired);
  EXPECT_TRUE(is_valid_utf8(GetParam().repaired));
}

INSTANTIATE_TEST_SUITE_P(
    All, Utf8Repair,
    ::testing::Values(
        // Tables 3-8 to 3-11 of the standard.
        IllFormed{"NonShortest", "\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", replacements(8) + "A"},
        IllFormed{"Surrogates", "\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", replacements(8) + "A"},
        IllFormed{"OtherIllFormed", "\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", replacements(5) + "A" + replacements(2) + "B"},
        IllFormed{"Truncated", "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", replacements(4) + "A"},
        IllFormed{"LoneContinuations", "\x80\xBF\x80", replacements(3)}, IllFormed{"NeverALead", "\xC1\xF5\xF8\xFE\xFF", replacements(5)},
        IllFormed{"LeadBeforeAscii", "\xE2(", replacements(1) + "("}, IllFormed{"TwoOfThree", "\xE2\x82", replacements(1)},
        IllFormed{"ThreeOfFour", "\xF0\x9F\x98", replacements(1)}, IllFormed{"ThreeOfFourThenAscii", "\xF0\x9F\x98x", replacements(1) + "x"},
        IllFormed{"TwoOfFourThenLead", "\xF0\x9F\xC3\xA9", replacements(1) + "\xC3\xA9"},
        IllFormed{"E0BelowItsRange", "\xE0\x9F\xBF", replacements(3)}, IllFormed{"F0BelowItsRange", "\xF0\x8F\xBF\xBF", replacements(4)},
        IllFormed{"F4AboveItsRange", "\xF4\x90\x80\x80", replacements(4)}, IllFormed{"ValidAround", "a\xFF\xC3\xA9", "a" + replacements(1) + "\xC3\xA9"}),
    [](const auto& tested) { return tested.param.name; });

TEST(Utf8, ValidTextIsUnchanged) {
  const std::string text("z\xC3\xB6\xE2\x82\xAC\xF0\x9F\x98\x80\0end", 13);
  EXPECT_TRUE(is_valid_utf8(text));
  EXPECT_EQ(replace_invalid_utf8(text), text);
  EXPECT_TRUE(is_valid_utf8(""));
}

TEST(IncompleteUtf8Suffix, IsWhatOnlyMoreBytesCanDecide) {
  for (const uint32_t c : {0x24u, 0xE9u, 0x800u, 0x20ACu, 0xD7FFu, 0xFFFDu, 0x10000u, 0x1F600u, 0x10FFFFu}) {
    const std::string character = encode(c);
    for (size_t cut = 0; cut < character.size(); ++cut) {
      for (const std::string before : {"", "x", "\xC3\xA9", "\xFF"}) {
        EXPECT_EQ(incomplete_utf8_suffix(before + character.substr(0, cut)), cut) << std::hex << c;
      }
    }
    EXPECT_EQ(incomplete_utf8_suffix(character), 0u) << std::hex << c;
  }
}

TEST(IncompleteUtf8Suffix, BytesThatCanNeverBecomeValidAreNotHeldBack) {
  for (const std::string_view text : {"\x80", "\xC0", "\xF5", "\xFF", "\xE0\x9F", "\xED\xA0", "\xF0\x8F", "\xF4\x90", "\xE2\x82\xAC\x80", "\xF0\x9F\x98\x80\x80"}) {
    EXPECT_EQ(incomplete_utf8_suffix(text), 0u) << static_cast<int>(static_cast<uint8_t>(text[0]));
  }
}

// Definition checked by exhaustion: a suffix is incomplete if it is not valid and some continuation of it is one character.
TEST(IncompleteUtf8Suffix, AgreesWithSearchOverAllTwoByteTexts) {
  const std::string continuations = "\x80\x8F\x90\x9F\xA0\xBF";
  const auto begins_a_character = [&](const std::string& head) {
    if (is_valid_utf8(head)) return false;
    for (const char a : continuations) {
      for (const char b : continuations) {
        for (const char c : continuations) {
          const std::string tail{a, b, c};
          for (size_t n = 1; n + head.size() <= 4 && n <= 3; ++n) {
            const std::string text = head + tail.substr(0, n);
            const CodePoint decoded = decode_utf8(text, 0);
            if (decoded.valid && decoded.length == text.size()) return true;
          }
        }
      }
    }
    return false;
  };
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; second += (second == 0x7F || second >= 0xC0) ? 1 : 16) {
      const std::string text{static_cast<char>(first), static_cast<char>(second)};
      size_t expected = 0;
      if (begins_a_character(text)) {
        expected = 2;
      } else if (begins_a_character(text.substr(1))) {
        expected = 1;
      }
      ASSERT_EQ(incomplete_utf8_suffix(text), expected) << std::hex << first << " " << second;
    }
  }
}

TEST(Utf8, APrefixCutsNoCharacter) {
  EXPECT_EQ(utf8_prefix("abc", 3), "abc");
  EXPECT_EQ(utf8_prefix("abc", 2), "ab");
  EXPECT_EQ(utf8_prefix("a\u00e9", 2), "a");
  EXPECT_EQ(utf8_prefix("a\u00e9", 3), "a\u00e9");
  EXPECT_EQ(utf8_prefix("\U0001f642", 3), "");
  EXPECT_EQ(utf8_prefix("", 0), "");
}

}  // namespace
}  // namespace espalier
