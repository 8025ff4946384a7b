#include "tokenizer/marked_text.h"

#include <gtest/gtest.h>

#include <random>

namespace espalier {
namespace {

TEST(MarkedText, NeighboursOfOneOriginBecomeOneSpan) {
  MarkedText text;
  text.append("<|im_start|>", Origin::kTemplate);
  text.append("user\n", Origin::kTemplate);
  text.append("", Origin::kInput);
  text.append("hello", Origin::kInput);
  EXPECT_EQ(text.text, "<|im_start|>user\nhello");
  EXPECT_EQ(text.spans, (std::vector<MarkedSpan>{{17, Origin::kTemplate}, {22, Origin::kInput}}));
}

TEST(MarkedText, EqualTextWithOtherMarksIsNotEqual) {
  EXPECT_EQ(MarkedText("a", Origin::kInput), MarkedText("a", Origin::kInput));
  EXPECT_NE(MarkedText("a", Origin::kInput), MarkedText("a", Origin::kTemplate));
}

TEST(MarkedText, AppendsItself) {
  MarkedText text("ab", Origin::kTemplate);
  text.append("c", Origin::kInput);
  text.append(text);
  EXPECT_EQ(text.text, "abcabc");
  EXPECT_EQ(text.spans.size(), 4u);
}

TEST(MarkedText, EmptyTextHasNoSpans) {
  const MarkedText text("", Origin::kTemplate);
  EXPECT_TRUE(text.empty());
  EXPECT_TRUE(text.spans.empty());
  EXPECT_EQ(text.substr(0), text);
}

// Every cut keeps the origin of every byte, and the parts joined are the whole.
TEST(MarkedText, CutsAnywhereAndJoinsAgain) {
  std::mt19937 random(7);
  MarkedText whole;
  std::vector<Origin> origins;
  for (int i = 0; i < 40; ++i) {
    const std::string bytes(random() % 4, static_cast<char>('a' + i % 26));
    const Origin origin = random() % 2 != 0 ? Origin::kInput : Origin::kTemplate;
    whole.append(bytes, origin);
    origins.insert(origins.end(), bytes.size(), origin);
  }
  ASSERT_EQ(origins.size(), whole.size());
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    MarkedText joined = whole.prefix(cut);
    ASSERT_EQ(joined.size(), cut);
    for (size_t i = 0; i < cut; ++i) ASSERT_EQ(joined.origin_at(i), origins[i]) << "byte " << i << " of prefix " << cut;
    const MarkedText rest = whole.substr(cut);
    for (size_t i = 0; i < rest.size(); ++i) ASSERT_EQ(rest.origin_at(i), origins[cut + i]);
    joined.append(rest);
    ASSERT_EQ(joined, whole) << "cut at " << cut;
  }
}

}  // namespace
}  // namespace espalier
