#include "tokenizer/added_token_matcher.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier {
namespace {

AddedToken token(TokenId id, std::string content) {
  AddedToken made;
  made.id = id;
  made.content = std::move(content);
  return made;
}

// "ordinary|<id>|ordinary", the text of ordinary segments in quotes.
std::string split(const AddedTokenMatcher& matcher, std::string_view text, std::vector<TextRange> allowed) {
  std::string shown;
  size_t end = 0;
  for (const TextSegment& segment : matcher.split(text, allowed)) {
    EXPECT_EQ(segment.range.begin, end) << "segments leave no gap";
    EXPECT_LT(segment.range.begin, segment.range.end) << "no segment is empty";
    end = segment.range.end;
    if (!shown.empty()) shown += "|";
    shown += segment.token ? std::to_string(*segment.token) : "'" + std::string(text.substr(segment.range.begin, end - segment.range.begin)) + "'";
  }
  EXPECT_EQ(end, text.size());
  return shown;
}

std::string split(const AddedTokenMatcher& matcher, std::string_view text) { return split(matcher, text, {{0, text.size()}}); }

TEST(AddedTokenMatcher, LeftmostThenLongest) {
  const AddedTokenMatcher matcher({token(1, "<a>"), token(2, "<a><b>"), token(3, "b>c"), token(4, "<a")});
  EXPECT_EQ(split(matcher, "x<a>y"), "'x'|1|'y'");
  EXPECT_EQ(split(matcher, "<a><b>c"), "2|'c'");
  EXPECT_EQ(split(matcher, "<a><bb>c"), "1|'<b'|3");
  EXPECT_EQ(split(matcher, "<a<a>"), "4|1");
  EXPECT_EQ(split(matcher, ""), "");
  EXPECT_EQ(split(matcher, "<"), "'<'");
}

TEST(AddedTokenMatcher, OnlyWithinAllowedRanges) {
  const AddedTokenMatcher matcher({token(1, "<a>"), token(2, "<a><b>")});
  EXPECT_EQ(split(matcher, "<a><a><a>", {{3, 6}}), "'<a>'|1|'<a>'");
  EXPECT_EQ(split(matcher, "<a><b>", {{0, 5}}), "1|'<b>'");          // the longer one reaches into the input
  EXPECT_EQ(split(matcher, "<a>", {{0, 2}, {2, 3}}), "'<a>'");       // two ranges are not one
  EXPECT_EQ(split(matcher, "<a>", {}), "'<a>'");
}

TEST(AddedTokenMatcher, StripsWhitespaceAround) {
  AddedToken left = token(1, "<l>");
  left.lstrip = true;
  AddedToken right = token(2, "<r>");
  right.rstrip = true;
  const AddedTokenMatcher matcher({left, right});
  EXPECT_EQ(split(matcher, "a \u3000\n<l> b"), "'a'|1|' b'");
  EXPECT_EQ(split(matcher, "a <r> \u3000\nb"), "'a '|2|'b'");
  EXPECT_EQ(split(matcher, "<r>  <l>"), "2|1");  // spaces are swallowed once
  EXPECT_EQ(split(matcher, " <l>"), "1");
}

TEST(AddedTokenMatcher, SingleWordsTouchNoWord) {
  AddedToken word = token(1, "abc");
  word.single_word = true;
  const AddedTokenMatcher matcher({word});
  EXPECT_EQ(split(matcher, "abc,abc"), "1|','|1");
  EXPECT_EQ(split(matcher, "xabc"), "'xabc'");
  EXPECT_EQ(split(matcher, "abc_"), "'abc_'");
  EXPECT_EQ(split(matcher, "\u4E2Dabc abc"), "'\u4E2Dabc '|1");
}

}  // namespace
}  // namespace espalier
