#include "tokenizer/char_class.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace espalier {
namespace {

// The sizes of \p{L}, \p{M}, \p{N} and \s in the reference engine.
TEST(CharClass, ClassesHaveTheReferenceSizes) {
  const auto count = [](CharClass type) { return std::count(char_classes().begin(), char_classes().end(), type); };
  EXPECT_EQ(count(CharClass::kLetter), 141028);
  EXPECT_EQ(count(CharClass::kMark), 2501);
  EXPECT_EQ(count(CharClass::kNumber), 1911);
  EXPECT_EQ(count(CharClass::kSpace), 25);
}

TEST(CharClass, KnownCharacters) {
  const auto type = [](char32_t point) { return char_classes()[point]; };
  EXPECT_EQ(type(U'a'), CharClass::kLetter);
  EXPECT_EQ(type(U'\u00AA'), CharClass::kLetter);  // feminine ordinal
  EXPECT_EQ(type(U'\u4E2D'), CharClass::kLetter);
  EXPECT_EQ(type(U'\u0301'), CharClass::kMark);
  EXPECT_EQ(type(U'\uFE0F'), CharClass::kMark);   // emoji presentation
  EXPECT_EQ(type(U'\u00B2'), CharClass::kNumber);  // superscript two
  EXPECT_EQ(type(U'\u216B'), CharClass::kNumber);  // Roman numeral twelve
  EXPECT_EQ(type(U'\u3000'), CharClass::kSpace);
  EXPECT_EQ(type(U'\u0085'), CharClass::kSpace);
  EXPECT_EQ(type(U'\u200B'), CharClass::kOther);  // zero width space is no space
  EXPECT_EQ(type(U'\uFEFF'), CharClass::kOther);
  EXPECT_EQ(type(U'_'), CharClass::kOther);
  EXPECT_EQ(type(U'\U0001F642'), CharClass::kOther);
}

}  // namespace
}  // namespace espalier
