#include "cache/ghost_list.h"

#include <gtest/gtest.h>

#include "cache/cache_test_support.h"

namespace espalier {
namespace {

TEST(TokenKey, OfAPrefixDoesNotDependOnWhatFollowsOrOnEarlierQuestions) {
  const Tokens tokens = iota_tokens(0, 1000);
  PrefixHasher hasher(tokens);
  for (const size_t count : {0u, 1u, 255u, 256u, 257u, 512u, 999u, 1000u}) {
    EXPECT_EQ(hasher.key(count), token_key(std::span(tokens).first(count))) << count;
  }
  Tokens other = tokens;
  other[300] ^= 1;
  EXPECT_EQ(token_key(std::span(tokens).first(300)), token_key(std::span(other).first(300)));
  EXPECT_NE(token_key(std::span(tokens).first(301)), token_key(std::span(other).first(301)));
}

TEST(GhostList, FindsTheLongestThatIsAPrefixWithinTheLimits) {
  GhostList ghosts;
  const Tokens prompt = iota_tokens(0, 600);
  for (const size_t count : {10u, 300u, 600u}) ghosts.add({.settings = 0, .key = token_key(std::span(prompt).first(count)), .evicted = {}});
  ghosts.add({.settings = 0, .key = token_key(iota_tokens(5, 400)), .evicted = {}});
  EXPECT_EQ(ghosts.longest_prefix(prompt, 0, 0, 600)->key.count, 600u);
  EXPECT_EQ(ghosts.longest_prefix(prompt, 0, 0, 599)->key.count, 300u);
  EXPECT_FALSE(ghosts.longest_prefix(prompt, 0, 300, 599).has_value());
  EXPECT_FALSE(ghosts.longest_prefix(prompt, 1, 0, 600).has_value());
  ghosts.forget(0, token_key(prompt));
  EXPECT_EQ(ghosts.longest_prefix(prompt, 0, 0, 600)->key.count, 300u);
}

TEST(GhostList, IsBoundedAndForgetsTheOldest_I5) {
  GhostList ghosts;
  for (TokenId i = 0; i < 2000; ++i) ghosts.add({.settings = 0, .key = token_key(Tokens{i}), .evicted = {}});
  EXPECT_EQ(ghosts.size(), GhostList::kMaxGhosts);
  EXPECT_FALSE(ghosts.longest_prefix(Tokens{0}, 0, 0, 1).has_value());
  EXPECT_TRUE(ghosts.longest_prefix(Tokens{1999}, 0, 0, 1).has_value());
}

}  // namespace
}  // namespace espalier
