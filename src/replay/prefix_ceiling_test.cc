#include "replay/prefix_ceiling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

namespace espalier {
namespace {

using Ids = std::vector<TokenId>;
using Positions = std::vector<int64_t>;

TEST(PrefixCeiling, TheFirstPromptIsCold) {
  PrefixCeiling ceiling;
  const PromptCeiling served = ceiling.add({Ids{1, 2, 3}, {}});
  EXPECT_EQ(served.perfect, 0);
  EXPECT_EQ(served.snapshot, 0);
  EXPECT_EQ(ceiling.totals().prompt_tokens, 3);
}

TEST(PrefixCeiling, SharedPrefixesCountFromAnyEarlierPrompt) {
  PrefixCeiling ceiling;
  ceiling.add({Ids{1, 2, 3, 4}, {}});
  ceiling.add({Ids{1, 9, 9, 9}, {}});
  EXPECT_EQ(ceiling.add({Ids{1, 2, 3, 5, 6}, {}}).perfect, 3);
  EXPECT_EQ(ceiling.add({Ids{1, 9, 9, 7}, {}}).perfect, 3);
  EXPECT_EQ(ceiling.add({Ids{8}, {}}).perfect, 0);
}

TEST(PrefixCeiling, TheLastTokenIsAlwaysComputed) {
  PrefixCeiling ceiling;
  ceiling.add({Ids{1, 2, 3}, Positions{3}});
  const PromptCeiling again = ceiling.add({Ids{1, 2, 3}, {}});
  EXPECT_EQ(again.perfect, 2);
  EXPECT_EQ(again.snapshot, 0);
  EXPECT_EQ(ceiling.add({Ids{1, 2, 3, 4}, {}}).snapshot, 3);
}

TEST(PrefixCeiling, ASnapshotServesOnlyPromptsThatBeginWithAllOfIt) {
  PrefixCeiling ceiling;
  ceiling.add({Ids{1, 2, 3, 4, 5, 6}, Positions{2, 5}});
  EXPECT_EQ(ceiling.add({Ids{1, 2, 3, 4, 5, 7, 8}, {}}).snapshot, 5);
  EXPECT_EQ(ceiling.add({Ids{1, 2, 3, 4, 9, 9}, {}}).snapshot, 2);
  EXPECT_EQ(ceiling.add({Ids{1, 9}, {}}).snapshot, 0);
}

TEST(PrefixCeiling, PositionsMayRepeatAndMayFallInsideKnownText) {
  PrefixCeiling ceiling;
  ceiling.add({Ids{1, 2, 3, 4, 5}, {}});
  ceiling.add({Ids{1, 2, 3, 4, 5}, Positions{3, 3}});
  EXPECT_EQ(ceiling.add({Ids{1, 2, 3, 4, 5, 6}, {}}).snapshot, 3);
  EXPECT_EQ(ceiling.tree_tokens(), 6);
}

TEST(PrefixCeiling, AnEmptyPromptIsHarmless) {
  PrefixCeiling ceiling;
  EXPECT_EQ(ceiling.add({{}, {}}).perfect, 0);
  EXPECT_EQ(ceiling.totals().prompts, 1);
}

// Against all pairs, with few distinct tokens so that prefixes fork everywhere.
TEST(PrefixCeiling, EqualsComparingAllPairs) {
  constexpr unsigned kSeed = 20261201;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::vector<Ids> prompts;
  std::vector<Positions> snapshots;
  PrefixCeiling ceiling;
  for (int i = 0; i < 400; ++i) {
    Ids ids;
    if (!prompts.empty() && below(3) != 0) {
      ids = prompts[below(prompts.size())];
      ids.resize(below(ids.size() + 1));
    }
    for (size_t more = below(12); more > 0; --more) ids.push_back(static_cast<TokenId>(below(2)));
    Positions positions;
    for (size_t n = below(4); n > 0 && !ids.empty(); --n) positions.push_back(static_cast<int64_t>(1 + below(ids.size())));
    std::sort(positions.begin(), positions.end());

    PromptCeiling expected;
    for (size_t j = 0; j < prompts.size(); ++j) {
      const Ids& earlier = prompts[j];
      int64_t common = 0;
      while (common + 1 < static_cast<int64_t>(ids.size()) && common < static_cast<int64_t>(earlier.size()) &&
             earlier[static_cast<size_t>(common)] == ids[static_cast<size_t>(common)]) {
        ++common;
      }
      expected.perfect = std::max(expected.perfect, common);
      for (const int64_t position : snapshots[j]) {
        if (position <= common) expected.snapshot = std::max(expected.snapshot, position);
      }
    }
    const PromptCeiling served = ceiling.add({ids, positions});
    ASSERT_EQ(served.perfect, expected.perfect) << i;
    ASSERT_EQ(served.snapshot, expected.snapshot) << i;
    prompts.push_back(ids);
    snapshots.push_back(positions);
  }
}

// The agent workload's size: 1,000 prompts of 20 growing conversations, 13.5 million tokens.
TEST(PrefixCeiling, AgentWorkloadTakesSecondsAndKeepsEachHistoryOnce) {
  PrefixCeiling ceiling;
  const auto start = std::chrono::steady_clock::now();
  std::mt19937 random(7);
  int64_t histories = 0;
  for (TokenId conversation = 0; conversation < 20; ++conversation) {
    Ids ids(400, 1);  // the shared block
    for (int turn = 0; turn < 50; ++turn) {
      for (int i = 0; i < 530; ++i) ids.push_back(static_cast<TokenId>(random() % 250000));
      ceiling.add({ids, Positions{400, static_cast<int64_t>(ids.size()) - 3}});
    }
    histories += static_cast<int64_t>(ids.size()) - 400;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  const CeilingTotals& totals = ceiling.totals();
  EXPECT_EQ(totals.prompts, 1000);
  EXPECT_EQ(totals.prompt_tokens, 20 * (50 * 400 + 530 * 50 * 51 / 2));
  EXPECT_EQ(totals.perfect, 19 * 400 + 20 * (49 * 400 + 530 * 49 * 50 / 2));
  EXPECT_EQ(totals.snapshot, totals.perfect - 3 * 20 * 49);
  EXPECT_EQ(ceiling.tree_tokens(), histories + 400);
}

}  // namespace
}  // namespace espalier
