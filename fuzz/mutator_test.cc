#include "fuzz/mutator.h"

#include <gtest/gtest.h>

#include <set>

namespace espalier::fuzz {
namespace {

const std::vector<std::string> kSeeds = {R"({"name": "F32", "shape": [12, 3]})", "{% for x in list %}{{ x }}{% endfor %}", ""};

TEST(Mutator, SameSeedSameChanges) {
  Mutator first(11, 1000);
  Mutator second(11, 1000);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(first.mutate(kSeeds[0], kSeeds), second.mutate(kSeeds[0], kSeeds));
}

TEST(Mutator, NearlyEveryResultIsNew) {
  Mutator mutator(1, 1000);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(mutator.mutate(kSeeds[0], kSeeds));
  EXPECT_GT(seen.size(), 800u);
}

TEST(Mutator, LengthStaysWithinTheLimit) {
  Mutator mutator(2, 50);
  size_t longest = 0;
  for (int i = 0; i < 3000; ++i) longest = std::max(longest, mutator.mutate(kSeeds[static_cast<size_t>(i) % 3], kSeeds).size());
  EXPECT_EQ(longest, 50u);
}

TEST(Mutator, EmptyInputAndNoOthersAreFine) {
  Mutator mutator(3, 100);
  bool grew = false;
  for (int i = 0; i < 300; ++i) grew = grew || !mutator.mutate("", {}).empty();
  EXPECT_TRUE(grew);
}

TEST(Mutator, NumbersGrowBeyondSixtyFourBits) {
  Mutator mutator(4, 1000);
  bool found = false;
  for (int i = 0; i < 5000 && !found; ++i) found = mutator.mutate(kSeeds[0], {}).find("[18446744073709551616, 3]") != std::string::npos;
  EXPECT_TRUE(found);
}

TEST(Mutator, BlocksOfOtherSeedsComeIn) {
  Mutator mutator(5, 1000);
  bool found = false;
  for (int i = 0; i < 2000 && !found; ++i) found = mutator.mutate(kSeeds[0], {kSeeds[1]}).find("{% for") != std::string::npos;
  EXPECT_TRUE(found);
}

TEST(Mutator, RepetitionReachesDepthLimits) {
  Mutator mutator(6, 64 * 1024);
  bool found = false;
  const std::string deep(200, '[');
  for (int i = 0; i < 20000 && !found; ++i) found = mutator.mutate("[[[[]]]]", {}).find(deep) != std::string::npos;
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace espalier::fuzz
