#include "replay/streamed_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A chunk around a delta.
std::string chunk(std::string_view delta, std::string_view finish_reason = "null") {
  return format(R"({{"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{{"index":0,"delta":{},"finish_reason":{}}}]}})", delta,
                finish_reason);
}

StreamedAnswer answer_of(const std::vector<std::string>& chunks) {
  StreamedAnswer answer;
  for (const std::string& each : chunks) {
    const auto shown = answer.add(each);
    EXPECT_TRUE(shown.ok()) << each << ": " << shown.error().message;
  }
  return answer;
}

Error failure_of(std::string_view text) {
  StreamedAnswer answer;
  const auto shown = answer.add(text);
  EXPECT_FALSE(shown.ok()) << text;
  return shown.ok() ? Error{} : shown.error();
}

TEST(StreamedAnswer, PutsContentAndACallTogether) {
  const StreamedAnswer answer = answer_of({
      chunk(R"({"role":"assistant","content":"I "})"),
      chunk(R"({"content":"will"})"),
      chunk(R"({"tool_calls":[{"index":0,"id":"call_0","type":"function","function":{"name":"bash","arguments":""}}]})"),
      chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"command\": "}}]})"),
      chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"\"ls\"}"}}]})"),
      chunk("{}", R"("tool_calls")"),
  });
  EXPECT_EQ(answer.whole().content, "I will");
  ASSERT_EQ(answer.whole().calls.size(), 1u);
  EXPECT_EQ(answer.whole().calls[0].id, "call_0");
  EXPECT_EQ(answer.whole().calls[0].name, "bash");
  EXPECT_EQ(answer.whole().calls[0].arguments, R"({"command": "ls"})");
  EXPECT_EQ(answer.finish_reason(), "tool_calls");
  EXPECT_EQ(answer.num_chunks(), 6u);
}

TEST(StreamedAnswer, CallsAreMergedByIndexAndSortedByIt) {
  const StreamedAnswer answer = answer_of({
      chunk(R"({"tool_calls":[{"index":1,"id":"b","function":{"name":"second","arguments":"{"}},)"
            R"({"index":0,"id":"a","function":{"name":"first","arguments":"{"}}]})"),
      chunk(R"({"tool_calls":[{"index":0,"id":"","function":{"name":"","arguments":"}"}}]})"),
      chunk(R"({"tool_calls":[{"index":1,"id":null,"type":null,"function":{"arguments":"}"}}]})"),
  });
  ASSERT_EQ(answer.whole().calls.size(), 2u);
  EXPECT_EQ(answer.whole().calls[0].name, "first");
  EXPECT_EQ(answer.whole().calls[0].id, "a");
  EXPECT_EQ(answer.whole().calls[0].arguments, "{}");
  EXPECT_EQ(answer.whole().calls[1].name, "second");
  EXPECT_EQ(answer.whole().calls[1].id, "b");
  EXPECT_EQ(answer.whole().calls[1].arguments, "{}");
}

TEST(StreamedAnswer, CallsWithoutIndexAreOneAndTheLastNameStays) {
  const StreamedAnswer answer = answer_of({
      chunk(R"({"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}}]})"),
      chunk(R"({"tool_calls":[{"id":"b","function":{"name":"y","arguments":"{}"}}]})"),
  });
  ASSERT_EQ(answer.whole().calls.size(), 1u);
  EXPECT_EQ(answer.whole().calls[0].id, "b");
  EXPECT_EQ(answer.whole().calls[0].name, "y");
  EXPECT_EQ(answer.whole().calls[0].arguments, "{}{}");
}

TEST(StreamedAnswer, ItBeginsWithTextOrACallAndNotWithARole) {
  StreamedAnswer answer = answer_of({chunk(R"({"role":"assistant"})"), chunk(R"({"role":"assistant","content":""})"), chunk(R"({"content":null})"),
                                     chunk(R"({"tool_calls":[]})"), chunk(R"({"tool_calls":null})"), chunk("null"), chunk("{}")});
  EXPECT_FALSE(answer.begun());
  EXPECT_TRUE(answer_of({chunk(R"({"content":"a"})")}).begun());
  EXPECT_TRUE(answer_of({chunk(R"({"reasoning_content":"a"})")}).begun());
  EXPECT_TRUE(answer_of({chunk(R"({"reasoning":"a"})")}).begun());
  EXPECT_TRUE(answer_of({chunk(R"({"tool_calls":[{"index":0}]})")}).begun());
}

TEST(StreamedAnswer, ReasoningBesideContentIsLostAsInTheHarness) {
  const StreamedAnswer answer = answer_of({chunk(R"({"reasoning_content":"r","content":"c"})"), chunk(R"({"reasoning":"s"})")});
  EXPECT_EQ(answer.whole().content, "c");
  EXPECT_EQ(answer.whole().reasoning, "s");
}

TEST(StreamedAnswer, OnlyTheFirstChoiceCountsAndUnknownKeysDoNot) {
  const StreamedAnswer answer = answer_of({
      R"({"choices":[{"delta":{"content":"a","refusal":null,"audio":{}},"logprobs":{}},{"delta":{"content":"b"}}],"x":[1]})",
      R"({"choices":[]})",
      R"({"usage":null})",
      R"({})",
  });
  EXPECT_EQ(answer.whole().content, "a");
}

TEST(StreamedAnswer, TheLastFinishReasonGivenStays) {
  EXPECT_EQ(answer_of({chunk("{}", R"("length")"), chunk("{}", R"("stop")"), chunk("{}"), chunk("{}", R"("")")}).finish_reason(), "stop");
  EXPECT_THAT(answer_of({chunk("{}")}).finish_reason(), IsEmpty());
}

TEST(StreamedAnswer, ShowsWhatEachChunkAdds) {
  StreamedAnswer answer;
  EXPECT_EQ(answer.add(chunk(R"({"reasoning_content":"hm "})")).value(), "hm ");
  EXPECT_EQ(answer.add(chunk(R"({"content":"\u00e4 "})")).value(), "\xc3\xa4 ");
  EXPECT_EQ(answer.add(chunk(R"({"tool_calls":[{"index":0,"function":{"name":"bash","arguments":""}}]})")).value(), "\n[bash] ");
  EXPECT_EQ(answer.add(chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]})")).value(), "{}");
  EXPECT_EQ(answer.add(chunk(R"({"tool_calls":[{"index":1,"function":{"name":"bash","arguments":"{}"}}]})")).value(), "\n[bash] {}");
  EXPECT_EQ(answer.add(chunk("{}", R"("stop")")).value(), "");
  StreamedAnswer on_a_new_line;
  EXPECT_EQ(on_a_new_line.add(chunk(R"({"tool_calls":[{"index":0,"function":{"name":"bash"}}]})")).value(), "[bash] ");
  on_a_new_line = answer_of({chunk(R"({"content":"Look:\n\n"})")});
  EXPECT_EQ(on_a_new_line.add(chunk(R"({"tool_calls":[{"index":0,"function":{"name":"bash"}}]})")).value(), "[bash] ");
}

// What the harness counts for TPOT.
TEST(StreamedAnswer, BehindTheFirstPieceOfContentAllCallsCount) {
  const AnswerParts rest = answer_of({chunk(R"({"content":"A"})"), chunk(R"({"content":"B"})"),
                                      chunk(R"({"tool_calls":[{"index":0,"function":{"name":"bash","arguments":"{}"}}]})")})
                               .after_first_chunk();
  EXPECT_EQ(rest.content, "B");
  ASSERT_EQ(rest.calls.size(), 1u);
  EXPECT_EQ(rest.calls[0].name, "bash");
}

TEST(StreamedAnswer, WithReasoningItsFirstPieceIsWhatIsLeftOut) {
  const AnswerParts rest =
      answer_of({chunk(R"({"content":"A"})"), chunk(R"({"reasoning_content":"B"})"), chunk(R"({"reasoning_content":"C"})")}).after_first_chunk();
  EXPECT_EQ(rest.content, "A");
  EXPECT_EQ(rest.reasoning, "C");
}

TEST(StreamedAnswer, WithoutTextTheFirstPieceOfTheCallsIsLeftOut) {
  const AnswerParts rest = answer_of({chunk(R"({"tool_calls":[{"index":0,"id":"c","function":{"name":"bash","arguments":"{"}}]})"),
                                      chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"\"a\":"}}]})"),
                                      chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"1}"}},)"
                                            R"({"index":1,"function":{"name":"x","arguments":"{}"}}]})")})
                               .after_first_chunk();
  ASSERT_EQ(rest.calls.size(), 2u);
  EXPECT_EQ(rest.calls[0].name, "");
  EXPECT_EQ(rest.calls[0].id, "");
  EXPECT_EQ(rest.calls[0].type, "function");
  EXPECT_EQ(rest.calls[0].arguments, "\"a\":1}");
  EXPECT_EQ(rest.calls[1].name, "x");
}

TEST(StreamedAnswer, AnAnswerOfOnePieceLeavesNothing) {
  EXPECT_TRUE(answer_of({chunk(R"({"content":"A"})")}).after_first_chunk().empty());
  EXPECT_TRUE(answer_of({chunk(R"({"tool_calls":[{"index":0,"function":{"name":"bash","arguments":"{}"}}]})")}).after_first_chunk().empty());
  EXPECT_TRUE(StreamedAnswer().after_first_chunk().empty());
}

TEST(StreamedAnswer, CountsComeFromTheUsage) {
  const StreamedAnswer answer = answer_of({
      chunk("{}"),
      R"({"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":90}}})",
  });
  EXPECT_EQ(answer.counts().prompt_tokens, 100);
  EXPECT_EQ(answer.counts().cached_tokens, 90);
  EXPECT_EQ(answer.counts().completion_tokens, 7);
  EXPECT_EQ(answer_of({chunk("{}")}).counts().prompt_tokens, std::nullopt);
}

TEST(StreamedAnswer, TheServersOwnObjectGoesBeforeTheUsage) {
  const std::string own =
      R"({"choices":[{"delta":{},"finish_reason":"stop"}],"espalier":{"prompt_tokens":200,"cached_tokens":150,"completion_tokens":9,)"
      R"("adopted_tokens":3,"cold_reason":"diverged at token 150","timings":{"queue_ms":0.1,"first_token_ms":2.0,"total_ms":3.0}}})";
  const std::string usage = R"({"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":1}}})";
  for (const auto& chunks : {std::vector{own, usage}, std::vector{usage, own}}) {
    const StreamedAnswer answer = answer_of(chunks);
    EXPECT_EQ(answer.counts().prompt_tokens, 200);
    EXPECT_EQ(answer.counts().cached_tokens, 150);
    EXPECT_EQ(answer.counts().completion_tokens, 9);
    EXPECT_EQ(answer.counts().cold_reason, "diverged at token 150");
  }
}

TEST(StreamedAnswer, AnErrorOfTheServerKeepsItsWords) {
  EXPECT_THAT(failure_of(R"({"error":{"message":"out of\nmemory","type":"server_error"}})").message, HasSubstr("out of memory"));
  EXPECT_THAT(failure_of(R"({"error":"no"})").message, HasSubstr("no"));
  EXPECT_THAT(failure_of(R"({"choices":[],"error":{"code":5}})").message, HasSubstr(R"({"code":5})"));
  EXPECT_EQ(failure_of(R"({"error":{}})").code, ErrorCode::kIo);
  EXPECT_TRUE(StreamedAnswer().add(R"({"error":null,"choices":[]})").ok());
}

class WrongChunks : public ::testing::TestWithParam<std::string> {};

TEST_P(WrongChunks, AreRefused) {
  const Error error = failure_of(GetParam());
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  EXPECT_THAT(error.message, HasSubstr("chunk of the stream"));
}

INSTANTIATE_TEST_SUITE_P(StreamedAnswer, WrongChunks,
                         ::testing::Values("", "{", "[]", "5", "{}{}", R"({"choices":null})", R"({"choices":{}})", R"({"choices":[null]})",
                                           R"({"choices":[{"delta":[]}]})", chunk(R"({"content":["a"]})"), chunk(R"({"content":1})"),
                                           chunk(R"({"reasoning_content":{}})"), chunk(R"({"role":1})"), chunk("{}", "1"),
                                           chunk("{\"content\":\"\xc3\"}"), chunk(R"({"content":"\ud83d"})"), chunk(R"({"tool_calls":{}})"),
                                           chunk(R"({"tool_calls":["x"]})"),
                                           chunk(R"({"tool_calls":[{"index":"0"}]})"), chunk(R"({"tool_calls":[{"index":0,"function":"x"}]})"),
                                           chunk(R"({"tool_calls":[{"index":0,"function":{"name":1}}]})"),
                                           chunk(R"({"tool_calls":[{"index":0,"function":{"name":"x","arguments":{"a":1}}}]})"),
                                           R"({"usage":{"prompt_tokens":-1}})", R"({"espalier":{"prompt_tokens":"many"}})"));

TEST(ErrorWords, TakeTheMessageFromWhateverShapeItHas) {
  EXPECT_EQ(error_words(R"({"error":{"message":"no such key","code":401}})"), "no such key");
  EXPECT_EQ(error_words(R"({"error":"no such key"})"), "no such key");
  EXPECT_EQ(error_words(R"({"detail":"no such key"})"), "no such key");
  EXPECT_EQ(error_words("busy\r\nlater"), "busy  later");
  EXPECT_EQ(error_words(""), "");
  EXPECT_EQ(error_words(std::string(1000, 'x')), std::string(300, 'x') + "...");
}

}  // namespace
}  // namespace espalier
