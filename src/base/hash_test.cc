#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <unordered_set>

namespace espalier {
namespace {

TEST(Hash64, IsXxh3) {
  EXPECT_EQ(hash64(""), 0x2D06800538D394C2u);  // published value of XXH3_64bits of no bytes
  EXPECT_NE(hash64("a"), hash64("b"));
  EXPECT_NE(hash64("a", 1), hash64("a", 2));
}

TEST(Hash128, ChainsThroughWhatStandsBefore) {
  const Hash128 first = hash128("first");
  EXPECT_EQ(hash128("second", first), hash128("second", hash128("first")));
  EXPECT_NE(hash128("second", first), hash128("second"));
  EXPECT_NE(hash128("second", first), hash128("second", {first.low, first.high ^ 1}));
  EXPECT_NE(hash128("second", first), hash128("second", {first.low ^ 1, first.high}));
}

TEST(Hash128, DoesNotDependOnWhatLayOnTheStackBefore) {
  const Hash128 expected = hash128("text", {42, 0});
  for (int fill = 0; fill < 256; ++fill) {
    {
      volatile char dirt[2048];
      for (volatile char& byte : dirt) byte = static_cast<char>(fill);
    }
    ASSERT_EQ(hash128("text", {42, 0}), expected);
  }
}

TEST(Hash128, EveryByteCounts) {
  std::unordered_set<Hash128> seen;
  for (size_t length = 0; length <= 300; ++length) EXPECT_TRUE(seen.insert(hash128(std::string(length, 'x'))).second);
  for (size_t i = 0; i < 300; ++i) {
    std::string text(300, 'x');
    text[i] = 'y';
    EXPECT_TRUE(seen.insert(hash128(text)).second);
  }
}

}  // namespace
}  // namespace espalier
