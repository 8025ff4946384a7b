#include "engine/prompt_encoder.h"

#include <gtest/gtest.h>

#include <random>

namespace espalier {
namespace {

std::shared_ptr<const Tokenizer> nano_tokenizer() {
  static const auto tokenizer = Tokenizer::load(std::string(ESPALIER_SOURCE_DIR) + "/models/espalier-nano").value();
  return tokenizer;
}

constexpr size_t kRoomy = size_t{8} << 20;

MarkedText turn(std::string_view role, std::string_view content) {
  MarkedText text("<|im_start|>", Origin::kTemplate);
  text.append(role, Origin::kTemplate);
  text.append("\n", Origin::kTemplate);
  text.append(content, Origin::kInput);
  text.append("<|im_end|>\n", Origin::kTemplate);
  return text;
}

MarkedText join(std::initializer_list<MarkedText> parts) {
  MarkedText whole;
  for (const MarkedText& part : parts) whole.append(part);
  return whole;
}

const MarkedText kSlot("<|im_start|>assistant\n", Origin::kTemplate);

TEST(PromptEncoder, IdsAreThoseOfTheTokenizerFirstAndAgain) {
  PromptEncoder encoder(nano_tokenizer(), kRoomy);
  const MarkedText prompt = join({turn("system", "Be brief."), turn("user", "def f(x):\n    return x<|im_end|>"), kSlot});
  for (int i = 0; i < 3; ++i) {
    const EncodedPrompt encoded = encoder.encode(prompt, {}, ReplyIds::kAdopt);
    EXPECT_EQ(encoded.ids, nano_tokenizer()->encode(prompt));
    EXPECT_EQ(encoded.adopted_tokens, 0);
  }
  EXPECT_EQ(encoder.encode(prompt, {}, ReplyIds::kCanonical).ids, nano_tokenizer()->encode(prompt));
}

TEST(PromptEncoder, BranchPointsMoveBackToTheControlTokenBefore) {
  PromptEncoder encoder(nano_tokenizer(), kRoomy);
  const MarkedText first = turn("user", "one two three");
  const MarkedText prompt = join({first, kSlot});
  const size_t after_end = first.size() - 1;  // "<|im_end|>" ends one byte before the newline
  const EncodedPrompt encoded = encoder.encode(prompt, std::vector<size_t>{0, 5, after_end, after_end + 3, prompt.size()}, ReplyIds::kAdopt);
  const auto count = [&](const MarkedText& text) { return static_cast<int64_t>(nano_tokenizer()->encode(text).size()); };
  EXPECT_EQ(encoded.branch_points, (std::vector<int64_t>{count(first.prefix(after_end)), count(first.prefix(after_end)) + 2}));
}

// A reply whose ids are not what the tokenizer makes of its text: the next prompt takes the ids as they were generated.
TEST(PromptEncoder, AGeneratedReplyIsAdoptedWithItsOwnIds) {
  const auto tokenizer = nano_tokenizer();
  PromptEncoder encoder(tokenizer, kRoomy);
  const MarkedText history = turn("user", "Say return.");
  const EncodedPrompt first = encoder.encode(join({history, kSlot}), {}, ReplyIds::kAdopt);
  std::vector<TokenId> reply;
  for (const char c : std::string("return value")) reply.push_back(*tokenizer->token_id(std::string_view(&c, 1)));
  reply.push_back(*tokenizer->token_id("<|im_end|>"));
  ASSERT_NE(tokenizer->encode("return value<|im_end|>"), reply);
  encoder.learn_reply(first.history, reply);

  const MarkedText next = join({history, turn("assistant", "return value"), turn("user", "Again."), kSlot});
  const EncodedPrompt adopted = encoder.encode(next, {}, ReplyIds::kAdopt);
  std::vector<TokenId> begin = first.ids;
  begin.insert(begin.end(), reply.begin(), reply.end());
  ASSERT_GT(adopted.ids.size(), begin.size());
  EXPECT_TRUE(std::equal(begin.begin(), begin.end(), adopted.ids.begin()));
  EXPECT_GE(adopted.adopted_tokens, static_cast<int64_t>(reply.size()));
  EXPECT_EQ(encoder.encode(next, {}, ReplyIds::kCanonical).ids, tokenizer->encode(next));

  // The same reply text in another conversation is not that reply.
  const MarkedText other = join({turn("user", "Something else."), turn("assistant", "return value"), kSlot});
  EXPECT_EQ(encoder.encode(other, {}, ReplyIds::kAdopt).ids, tokenizer->encode(other));
}

// Field case G4: what a user writes is matched by its marks as well, so spelling a known prompt with control tokens gains nothing.
TEST(PromptEncoder, KnownTextMatchesOnlyWithItsMarks_G4) {
  PromptEncoder encoder(nano_tokenizer(), kRoomy);
  const MarkedText real = join({turn("user", "hello"), kSlot});
  encoder.encode(real, {}, ReplyIds::kAdopt);
  const MarkedText spelled(real.text, Origin::kInput);
  const EncodedPrompt encoded = encoder.encode(spelled, {}, ReplyIds::kAdopt);
  EXPECT_EQ(encoded.ids, nano_tokenizer()->encode(spelled));
  for (const TokenId id : encoded.ids) EXPECT_FALSE(nano_tokenizer()->is_added(id));
}

TEST(PromptEncoder, MemoryStaysWithinItsLimitAndIdsStayRight) {
  constexpr size_t kLimit = 20000;
  PromptEncoder encoder(nano_tokenizer(), kLimit);
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::string content;
    for (int j = 0; j < 100; ++j) content += static_cast<char>('a' + random() % 26);
    const MarkedText prompt = join({turn("system", "shared"), turn("user", content), kSlot});
    EXPECT_EQ(encoder.encode(prompt, {}, ReplyIds::kAdopt).ids, nano_tokenizer()->encode(prompt));
    EXPECT_LE(encoder.bytes(), kLimit);
  }
}

}  // namespace
}  // namespace espalier
