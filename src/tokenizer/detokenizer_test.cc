#include "tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "tokenizer/tokenizer_test_support.h"

namespace espalier {
namespace {

// Merges so that a character's bytes come in tokens of one, two and three bytes.
std::shared_ptr<const Tokenizer> tokenizer() {
  static const auto made = small_tokenizer({{"\xF0", "\x9F"}, {"\xF0\x9F", "\x99"}, {"\x99", "\x82"}, {"\xE4", "\xB8"}, {"a", "\xF0"}, {"\x82", "\""}},
                                           {{.id = 262, .content = "<|end|>", .special = true}});
  return made;
}

std::vector<TokenId> bytes_as_ids(std::string_view bytes) {
  std::vector<TokenId> ids;
  for (const char byte : bytes) ids.push_back(static_cast<uint8_t>(byte));
  return ids;
}

// Field cases C7 and D17: every way to cut text with a four-byte character into bursts.
TEST(StreamingDetokenizer, EverySplitOfAnEmojiGivesWholeCharacters) {
  const std::string text = "a\U0001F642\"\u4E2D";
  const std::vector<TokenId> ids = bytes_as_ids(text);
  for (uint32_t cuts = 0; cuts < 1u << (ids.size() - 1); ++cuts) {
    StreamingDetokenizer detokenizer(tokenizer());
    std::string joined;
    for (size_t begin = 0; begin < ids.size();) {
      size_t end = begin + 1;
      while (end < ids.size() && (cuts >> (end - 1) & 1) == 0) ++end;
      const std::string piece = detokenizer.push(std::span(ids).subspan(begin, end - begin));
      ASSERT_TRUE(is_valid_utf8(piece)) << "cuts " << cuts;
      ASSERT_EQ(piece.find("\uFFFD"), std::string::npos) << "cuts " << cuts;
      joined += piece;
      begin = end;
    }
    ASSERT_EQ(joined, text) << "cuts " << cuts;
    ASSERT_EQ(detokenizer.flush(), "");
  }
}

TEST(StreamingDetokenizer, RandomBurstsJoinedAreTheWholeDecoded) {
  std::mt19937 random(31);
  for (int round = 0; round < 5000; ++round) {
    std::vector<TokenId> ids(random() % 20);
    for (TokenId& id : ids) id = random() % 3 == 0 ? static_cast<TokenId>(random() % 270) - 3 : 256 + static_cast<TokenId>(random() % 7);
    for (const SkipSpecial skip : {SkipSpecial::kNo, SkipSpecial::kYes}) {
      StreamingDetokenizer detokenizer(tokenizer(), skip);
      std::string joined;
      for (size_t begin = 0; begin < ids.size();) {
        const size_t count = std::min<size_t>(random() % 4, ids.size() - begin);
        const std::string piece = detokenizer.push(std::span(ids).subspan(begin, count));
        ASSERT_TRUE(is_valid_utf8(piece));
        joined += piece;
        begin += count;
      }
      joined += detokenizer.flush();
      ASSERT_EQ(joined, tokenizer()->decode(ids, skip)) << "seed 31, round " << round;
    }
  }
}

TEST(StreamingDetokenizer, ATruncatedCharacterIsReplacedAtTheEnd) {
  StreamingDetokenizer detokenizer(tokenizer());
  EXPECT_EQ(detokenizer.push(bytes_as_ids("x\xF0\x9F")), "x");
  EXPECT_EQ(detokenizer.flush(), "\uFFFD");
  EXPECT_EQ(detokenizer.push('y'), "y") << "ready for a new stream";
}

TEST(StreamingDetokenizer, SkippedTokensDoNotInterruptACharacter) {
  const std::vector<TokenId> ids = {0xE4, 262, 0xB8, 0xAD};
  EXPECT_EQ(StreamingDetokenizer(tokenizer(), SkipSpecial::kYes).push(ids), "\u4E2D");
  EXPECT_EQ(StreamingDetokenizer(tokenizer(), SkipSpecial::kNo).push(ids), "\uFFFD<|end|>\uFFFD\uFFFD");
}

TEST(StreamingDetokenizer, CopiesGoOnIndependently) {
  StreamingDetokenizer one(tokenizer());
  EXPECT_EQ(one.push(bytes_as_ids("\xE4\xB8")), "");
  StreamingDetokenizer other = one;
  EXPECT_EQ(one.push(0xAD), "\u4E2D");
  EXPECT_EQ(other.push(0xAE), "\u4E2E");
}

}  // namespace
}  // namespace espalier
