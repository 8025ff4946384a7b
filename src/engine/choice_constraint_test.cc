#include "engine/choice_constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "tokenizer/tokenizer_test_support.h"

namespace espalier {
namespace {

using ::testing::UnorderedElementsAre;

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Bytes are their own ids; then "ge", "get", "get_", ">\n", and two added tokens: <end> (special, no text) and <tool> (ordinary text).
std::shared_ptr<const Tokenizer> tokenizer() {
  static const auto made = small_tokenizer({{"g", "e"}, {"ge", "t"}, {"get", "_"}, {">", "\n"}},
                                           {{.id = 260, .content = "<end>", .special = true}, {.id = 261, .content = "<tool>", .special = false}});
  return made;
}

std::set<std::string> allowed(const TokenConstraint& constraint) {
  std::vector<float> logits(tokenizer()->vocab_size(), 1.5f);
  constraint.mask(logits);
  std::set<std::string> texts;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] == kNever) continue;
    EXPECT_EQ(logits[id], 1.5f);
    texts.insert(std::string(tokenizer()->token_bytes(static_cast<TokenId>(id))));
  }
  return texts;
}

std::unique_ptr<TokenConstraint> after(std::vector<std::string> choices, const std::vector<std::string>& tokens) {
  auto constraint = make_choice_constraint(*tokenizer(), std::move(choices))->clone();
  for (const std::string& token : tokens) constraint->advance(tokenizer()->token_id(token).value());
  return constraint;
}

TEST(ChoiceConstraint, AllowsEveryTokenThatContinuesAChoice) {
  const std::vector<std::string> choices = {"get_time>\n", "get>\n", "run>\n"};
  EXPECT_THAT(allowed(*after(choices, {})), UnorderedElementsAre("g", "ge", "get", "get_", "r"));
  EXPECT_THAT(allowed(*after(choices, {"g"})), UnorderedElementsAre("e"));
  EXPECT_THAT(allowed(*after(choices, {"get"})), UnorderedElementsAre("_", ">", ">\n"));
  EXPECT_THAT(allowed(*after(choices, {"get_"})), UnorderedElementsAre("t"));
  EXPECT_THAT(allowed(*after(choices, {"get", ">"})), UnorderedElementsAre("\n"));
}

TEST(ChoiceConstraint, AllowsEverythingOnceAChoiceIsWhole) {
  const auto everything = tokenizer()->vocab_size();
  for (const std::vector<std::string>& tokens : {std::vector<std::string>{"get", ">\n"}, {"g", "e", "t", ">", "\n"}}) {
    const auto constraint = after({"get>\n", "run>\n"}, tokens);
    std::vector<float> logits(everything, -2.0f);
    constraint->mask(logits);
    EXPECT_EQ(std::count(logits.begin(), logits.end(), -2.0f), static_cast<std::ptrdiff_t>(everything));
    constraint->advance(260);
    constraint->advance('z');
    constraint->mask(logits);
    EXPECT_EQ(std::count(logits.begin(), logits.end(), -2.0f), static_cast<std::ptrdiff_t>(everything));
  }
}

TEST(ChoiceConstraint, TheShorterOfTwoChoicesEndsTheRuleFirst) {
  EXPECT_THAT(allowed(*after({"get", "get_time"}, {"ge"})), UnorderedElementsAre("t"));
  EXPECT_EQ(allowed(*after({"get", "get_time"}, {"get"})).size(), tokenizer()->vocab_size());
  EXPECT_THAT(allowed(*after({"get", "get_time"}, {"get_"})), UnorderedElementsAre("t"));
}

TEST(ChoiceConstraint, SpecialTokensHaveNoTextAndAreForbidden_OrdinaryAddedOnesAreText) {
  EXPECT_THAT(allowed(*after({"<end>", "<tool>"}, {})), UnorderedElementsAre("<", "<tool>"));
}

TEST(ChoiceConstraint, CharactersMayBeCutAnywhere) {
  EXPECT_THAT(allowed(*after({"\xC3\xA9t", "\xC3\xA8s"}, {"\xC3"})), UnorderedElementsAre("\xA9", "\xA8"));
}

TEST(ChoiceConstraint, NothingToRestrict) {
  EXPECT_EQ(make_choice_constraint(*tokenizer(), {}), nullptr);
  EXPECT_EQ(make_choice_constraint(*tokenizer(), {"a", ""}), nullptr);
}

TEST(ChoiceConstraint, AnImpossibleModelStillChoosesAnAllowedToken) {
  for (const float bad : {kNever, std::nanf("")}) {
    std::vector<float> logits(tokenizer()->vocab_size(), bad);
    after({"run"}, {})->mask(logits);
    EXPECT_GT(logits['r'], kNever);
    EXPECT_EQ(logits['s'], kNever);
  }
}

TEST(ChoiceConstraint, AClonesProgressIsItsOwn) {
  const auto shared = make_choice_constraint(*tokenizer(), {"get>\n", "run>\n"});
  const auto one = shared->clone();
  one->advance('r');
  const auto two = one->clone();
  two->advance('u');
  EXPECT_THAT(allowed(*shared), UnorderedElementsAre("g", "ge", "get", "r"));
  EXPECT_THAT(allowed(*one), UnorderedElementsAre("u"));
  EXPECT_THAT(allowed(*two), UnorderedElementsAre("n"));
}

TEST(ChoiceConstraintDeathTest, AForbiddenTokenIsABug) {
  const auto constraint = after({"run"}, {});
  EXPECT_DEATH(constraint->advance('x'), "allowed");
  EXPECT_DEATH(constraint->advance(260), "allowed");
}

// Whatever is drawn among the allowed tokens, the text becomes a choice; every choice can be reached; long ones and a real vocabulary.
TEST(ChoiceConstraint, RandomWalksEndInAChoice) {
  const auto real = Tokenizer::load(std::string(ESPALIER_SOURCE_DIR) + "/models/espalier-nano").value();
  const std::vector<std::string> choices = {"read_file>\n", "read>\n", "write_file>\n", std::string(100, ' ') + "x", "grün>\n"};
  const auto constraint = make_choice_constraint(*real, choices);
  std::mt19937 random(3);
  std::set<std::string> reached;
  for (int walk = 0; walk < 200; ++walk) {
    const auto walker = constraint->clone();
    std::string text;
    while (true) {
      std::vector<float> logits(real->vocab_size(), 0.0f);
      walker->mask(logits);
      std::vector<TokenId> free;
      for (size_t id = 0; id < logits.size(); ++id) {
        if (logits[id] != kNever) free.push_back(static_cast<TokenId>(id));
      }
      if (free.size() == real->vocab_size()) break;
      ASSERT_FALSE(free.empty());
      const TokenId token = free[random() % free.size()];
      walker->advance(token);
      text += real->token_bytes(token);
    }
    ASSERT_THAT(choices, ::testing::Contains(text));
    reached.insert(text);
  }
  EXPECT_EQ(reached.size(), choices.size());
}

}  // namespace
}  // namespace espalier
