#include "chat/reasoning_splitter.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace espalier {
namespace {

using Split = std::pair<std::string, std::string>;

Split split(std::string_view text, size_t piece_bytes = std::string::npos) {
  ReasoningSplitter splitter("<function");
  Split out;
  const auto add = [&](const ReasoningSplitter::Pieces& pieces) {
    out.first += pieces.reasoning;
    out.second += pieces.rest;
  };
  for (size_t at = 0; at < text.size(); at += std::min(piece_bytes, text.size() - at)) add(splitter.feed(text.substr(at, piece_bytes)));
  add(splitter.finish());
  return out;
}

void expect_split(std::string_view text, const Split& expected) {
  for (const size_t piece_bytes : {std::string::npos, size_t{1}, size_t{3}}) EXPECT_EQ(split(text, piece_bytes), expected) << text;
}

TEST(ReasoningSplitter, EndsAtTheFirstCloser) {
  expect_split("a</think>b</think>c", {"a", "b</think>c"});
  expect_split("</think>b", {"", "b"});
  expect_split("a < b </thin k></think>", {"a < b </thin k>", ""});
}

TEST(ReasoningSplitter, AllOfAnUnclosedReplyIsReasoning) {
  expect_split("still thinking", {"still thinking", ""});
  expect_split("cut in a tag </thi", {"cut in a tag </thi", ""});
  expect_split("  \n", {"  \n", ""});
  expect_split("", {"", ""});
}

TEST(ReasoningSplitter, ASecondOpenerAtTheBeginningIsDropped) {
  expect_split("<think>\na</think>b", {"\na", "b"});
  expect_split("\n <think>a</think>b", {"\n a", "b"});
  expect_split("a<think>b</think>c", {"a<think>b", "c"});
  expect_split("<thi", {"<thi", ""});
}

TEST(ReasoningSplitter, ACallEndsReasoningButItsMentionDoesNot) {
  expect_split("go\n<tool_call>\n <function=f>", {"go\n", "<tool_call>\n <function=f>"});
  expect_split("the tag <tool_call> opens</think>x", {"the tag <tool_call> opens", "x"});
  expect_split("<tool_call><tool_call><function", {"<tool_call>", "<tool_call><function"});
  expect_split("<tool_call>\n</think>x", {"<tool_call>\n", "x"});
  expect_split("a <tool_call>\n<func", {"a <tool_call>\n<func", ""});
}

TEST(ReasoningSplitter, ShowsReasoningAtOnceButNoPartOfATag) {
  ReasoningSplitter splitter("<function");
  EXPECT_EQ(splitter.feed("one ").reasoning, "one ");
  EXPECT_EQ(splitter.feed("two <").reasoning, "two ");
  EXPECT_EQ(splitter.feed("/thin").reasoning, "");
  EXPECT_EQ(splitter.feed("g").reasoning, "</thing");
  EXPECT_EQ(splitter.feed("</think>").reasoning, "");
  EXPECT_EQ(splitter.feed("answer").rest, "answer");
}

}  // namespace
}  // namespace espalier
