#include "tokenizer/byte_level.h"

#include <gtest/gtest.h>

#include <set>

#include "base/utf8.h"

namespace espalier {
namespace {

TEST(ByteLevel, EveryByteHasItsOwnPrintableCharacter) {
  std::set<std::string> spellings;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    const std::string spelling = spelling_of_bytes(bytes);
    EXPECT_TRUE(is_valid_utf8(spelling));
    EXPECT_EQ(bytes_of_spelling(spelling), bytes);
    spellings.insert(spelling);
  }
  EXPECT_EQ(spellings.size(), 256u);
}

TEST(ByteLevel, KnownSpellings) {
  EXPECT_EQ(spelling_of_bytes(" a\n"), "\u0120a\u010A");
  EXPECT_EQ(spelling_of_bytes("\xC3\xA9"), "\u00C3\u00A9");
  EXPECT_EQ(spelling_of_bytes("\xAD"), "\u0143");  // the soft hyphen is the last of the 68
}

TEST(ByteLevel, OtherCharactersSpellNothing) {
  EXPECT_EQ(bytes_of_spelling("a b"), std::nullopt);
  EXPECT_EQ(bytes_of_spelling("\u0144"), std::nullopt);
  EXPECT_EQ(bytes_of_spelling("\u4E2D"), std::nullopt);
  EXPECT_EQ(bytes_of_spelling("\xFF"), std::nullopt);
  EXPECT_EQ(bytes_of_spelling(""), "");
}

}  // namespace
}  // namespace espalier
