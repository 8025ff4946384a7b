#include "engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace espalier {
namespace {

// All that is shown when `text` arrives in pieces of random length.
std::string shown(const std::vector<std::string>& stops, const std::string& text, std::mt19937& random) {
  StopMatcher matcher(stops);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::uniform_int_distribution<size_t>(1, 4)(random);
    const auto result = matcher.push(std::string_view(text).substr(at, length));
    out += result.text;
    if (result.stopped) return out;
    at += length;
  }
  return out + matcher.flush();
}

TEST(StopMatcher, CutsBeforeTheFirstStopWhateverThePieces) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    EXPECT_EQ(shown({"END", "\n\n"}, "one\ntwo END three", random), "one\ntwo ");
    EXPECT_EQ(shown({"END", "\n\n"}, "one\n\ntwo END", random), "one");
    EXPECT_EQ(shown({"aab"}, "aaaaab", random), "aaa");
    EXPECT_EQ(shown({"END"}, "no EN D here EN", random), "no EN D here EN");
    EXPECT_EQ(shown({}, "anything", random), "anything");
    EXPECT_EQ(shown({""}, "anything", random), "anything");
  }
}

TEST(StopMatcher, TheEarliestStopWinsOverTheFirstListed) {
  std::mt19937 random(2);
  EXPECT_EQ(shown({"later", "now"}, "do it now or later", random), "do it ");
}

TEST(StopMatcher, HoldsBackNoMoreThanItMust) {
  StopMatcher matcher({"<stop>"});
  EXPECT_EQ(matcher.push("abc<st").text, "abc");
  EXPECT_EQ(matcher.push("x").text, "<stx");
}

}  // namespace
}  // namespace espalier
