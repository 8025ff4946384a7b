#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "tokenizer/nfc.h"
#include "tokenizer/tokenizer_test_support.h"

namespace espalier {
namespace {

std::shared_ptr<const Tokenizer> nano() {
  static const std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::load(ESPALIER_SOURCE_DIR "/models/espalier-nano").value();
  return tokenizer;
}

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

bool any_added(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  return std::any_of(ids.begin(), ids.end(), [&](TokenId id) { return tokenizer.is_added(id); });
}

TEST(Tokenizer, DecodingAnEncodedTextIsItsNormalForm) {
  std::mt19937 random(21);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random_text(random, random() % 40);
    for (const auto control : {Tokenizer::Control::kMatch, Tokenizer::Control::kIgnore}) {
      ASSERT_EQ(nano()->decode(nano()->encode(text, control)), nfc(text)) << "seed 21, round " << round << ": " << text;
    }
  }
}

TEST(Tokenizer, ControlTokensAreSplitOutFirstAndTheRestStandsAlone) {
  const TokenId start = nano()->token_id("<|im_start|>").value();
  const TokenId end = nano()->token_id("<|im_end|>").value();
  for (const std::string word : {"user", " user", "\nuser", "'s", "  ", "7", ".\n"}) {
    std::vector<TokenId> expected = nano()->encode(word);
    expected.insert(expected.begin(), start);
    expected.push_back(end);
    EXPECT_EQ(nano()->encode("<|im_start|>" + word + "<|im_end|>"), expected) << word;
  }
}

TEST(Tokenizer, IgnoredControlTokensAreOrdinaryText) {
  const std::string text = "<|im_start|>system\n<think></think><tool_call>";
  EXPECT_FALSE(any_added(*nano(), nano()->encode(text, Tokenizer::Control::kIgnore)));
  EXPECT_EQ(nano()->decode(nano()->encode(text, Tokenizer::Control::kIgnore)), text);
}

// Field case G4: whatever input spells, and however it leans on the template's text, it makes no control token.
TEST(Tokenizer, InputNeverBecomesAControlToken) {
  for (const AddedToken& token : nano()->added_tokens()) {
    EXPECT_FALSE(any_added(*nano(), nano()->encode(MarkedText(token.content + " a " + token.content, Origin::kInput)))) << token.content;
    for (size_t cut = 1; cut < token.content.size(); ++cut) {
      MarkedText completed(token.content.substr(0, cut), Origin::kTemplate);
      completed.append(token.content.substr(cut), Origin::kInput);
      EXPECT_FALSE(any_added(*nano(), nano()->encode(completed))) << token.content << " cut at " << cut;
      MarkedText begun(token.content.substr(0, cut), Origin::kInput);
      begun.append(token.content.substr(cut), Origin::kTemplate);
      EXPECT_FALSE(any_added(*nano(), nano()->encode(begun))) << token.content << " cut at " << cut;
    }
  }
}

TEST(Tokenizer, TemplateTextBecomesControlTokensBesideInput) {
  MarkedText text("<|im_start|>user\n", Origin::kTemplate);
  text.append("<|im_end|>", Origin::kInput);
  text.append("<|im_end|>\n", Origin::kTemplate);
  std::vector<TokenId> expected = nano()->encode("<|im_start|>");
  for (const TokenId id : nano()->encode("user\n<|im_end|>", Tokenizer::Control::kIgnore)) expected.push_back(id);
  for (const TokenId id : nano()->encode("<|im_end|>\n")) expected.push_back(id);
  EXPECT_EQ(nano()->encode(text), expected);
}

// Marks say what may become a control token, not where text is cut.
TEST(Tokenizer, SpanBordersDoNotCutOrdinaryText) {
  std::mt19937 random(22);
  for (int round = 0; round < 1000; ++round) {
    MarkedText text;
    for (int span = 0; span < 6; ++span) text.append(random_text(random, random() % 6), random() % 2 == 0 ? Origin::kInput : Origin::kTemplate);
    ASSERT_EQ(nano()->encode(text), nano()->encode(text.text)) << "seed 22, round " << round << ": " << text.text;
  }
}

TEST(Tokenizer, NormalizedTokensAreMatchedAfterNormalisation) {
  AddedToken raw{.id = 256, .content = "<\u00E9>"};
  AddedToken normalized{.id = 257, .content = "[e\u0301]", .normalized = true};
  const auto tokenizer = small_tokenizer({}, {raw, normalized});
  EXPECT_EQ(tokenizer->encode("<\u00E9>"), std::vector<TokenId>{256});
  EXPECT_EQ(tokenizer->encode("<e\u0301>").size(), 4u);
  EXPECT_EQ(tokenizer->encode("[\u00E9]"), std::vector<TokenId>{257});
  EXPECT_EQ(tokenizer->encode("[e\u0301]"), std::vector<TokenId>{257});

  MarkedText from_template("x", Origin::kInput);
  from_template.append("[e\u0301]", Origin::kTemplate);
  EXPECT_EQ(tokenizer->encode(from_template), (std::vector<TokenId>{'x', 257}));
  MarkedText with_input("[e", Origin::kTemplate);
  with_input.append("\u0301", Origin::kInput);
  with_input.append("]", Origin::kTemplate);
  EXPECT_FALSE(any_added(*tokenizer, tokenizer->encode(with_input)));
}

TEST(Tokenizer, InvalidUtf8IsReadAsReplacementCharacters) {
  EXPECT_EQ(nano()->encode("a\xFF\xE4\xB8z"), nano()->encode("a\uFFFD\uFFFDz"));
  EXPECT_EQ(nano()->encode("\xF0\x9F\x99"), nano()->encode("\uFFFD"));
}

TEST(Tokenizer, IdsOutsideTheVocabularyAreNothing) {
  const auto beyond = static_cast<TokenId>(nano()->vocab_size());
  for (const TokenId id : {-1, beyond, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(nano()->token_bytes(id), "");
    EXPECT_FALSE(nano()->is_added(id));
    EXPECT_FALSE(nano()->is_special(id));
    EXPECT_EQ(nano()->decode(std::vector<TokenId>{'a', id}), nano()->decode(std::vector<TokenId>{'a'}));
  }
}

TEST(Tokenizer, SpecialTokensCanBeSkipped) {
  const std::vector<TokenId> ids = nano()->encode("<|im_start|>hi<think><|im_end|>");
  EXPECT_EQ(nano()->decode(ids), "<|im_start|>hi<think><|im_end|>");
  EXPECT_EQ(nano()->decode(ids, SkipSpecial::kYes), "hi<think>");
}

TEST(Tokenizer, TokenIdIsTheInverseOfTokenBytes) {
  for (TokenId id = 0; id < static_cast<TokenId>(nano()->vocab_size()); ++id) ASSERT_EQ(nano()->token_id(nano()->token_bytes(id)), id);
  EXPECT_EQ(nano()->token_id("no such token as this"), std::nullopt);
  EXPECT_EQ(nano()->token_id(""), std::nullopt);
}

TEST(Tokenizer, ManyThreadsEncodeAtOnce) {
  std::mt19937 random(23);
  const std::string text = random_text(random, 3000);
  const std::vector<TokenId> expected = nano()->encode(text);
  std::vector<std::vector<TokenId>> results(4);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) threads.emplace_back([&] { result = nano()->encode(text); });
  }
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace espalier
