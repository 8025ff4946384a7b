#include "replay/answer_actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "replay/iou.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kCall = "<tool_call>\n<function=bash>\n<parameter=command>\nls -la\n</parameter>\n</function>\n</tool_call>";

std::string arguments(std::string_view text, size_t call = 0) {
  const Json calls = answer_tool_calls(text);
  return calls.size() > call ? calls[call].at("function").at("arguments").get<std::string>() : "none";
}

TEST(AnswerToolCalls, OneCallAfterText) {
  const Json calls = answer_tool_calls("Let me look.\n\n" + std::string(kCall));
  EXPECT_EQ(dump_json(calls), R"([{"type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls -la\"}"}}])");
  EXPECT_THAT(tool_call_actions(calls), ElementsAre("ls"));
}

TEST(AnswerToolCalls, SeveralCallsAndParametersInOrder) {
  const std::string text = std::string(kCall) + "<tool_call><function=edit><parameter=path>a.py</parameter> <parameter=text>\n\nx\n\n</parameter></function></tool_call>";
  EXPECT_EQ(answer_tool_calls(text).size(), 2u);
  EXPECT_EQ(arguments(text, 1), R"({"path":"a.py","text":"\nx\n"})");
}

TEST(AnswerToolCalls, ValuesMayHoldMarkup) {
  EXPECT_EQ(arguments("<function=bash><parameter=command>\ncat > a.html <<'E'\n<a href=\"x\">&amp;</a>\nE\n</parameter></function>"),
            R"({"command":"cat > a.html <<'E'\n<a href=\"x\">&amp;</a>\nE"})");
}

TEST(AnswerToolCalls, MissingWrapperOrFunctionCloserIsForgiven) {
  EXPECT_EQ(arguments("<function=bash>\n<parameter=command>\nls\n</parameter>\n</tool_call>"), R"({"command":"ls"})");
  EXPECT_EQ(arguments("<function=noop></function>"), "{}");
}

TEST(AnswerToolCalls, EveryTruncationOfACallIsNoCall) {
  const size_t complete = kCall.find("</function>") + std::string_view("</function>").size();
  for (size_t length = 0; length < complete; ++length) EXPECT_THAT(answer_tool_calls(kCall.substr(0, length)), IsEmpty()) << length;
  for (size_t length = complete; length <= kCall.size(); ++length) EXPECT_EQ(answer_tool_calls(kCall.substr(0, length)).size(), 1u) << length;
}

TEST(AnswerToolCalls, ABrokenCallDoesNotHideTheNext) {
  EXPECT_EQ(answer_tool_calls("<function=bash>oops " + std::string(kCall)).size(), 1u);
  EXPECT_EQ(answer_tool_calls("<function=>" + std::string(kCall)).size(), 1u);
  EXPECT_EQ(answer_tool_calls("<function=a\nb>" + std::string(kCall)).size(), 1u);
}

TEST(AnswerToolCalls, ACutValueIsNotReadAsACall) {
  EXPECT_THAT(answer_tool_calls("<function=bash><parameter=command>\necho '<function=bash></function>"), IsEmpty());
}

TEST(AnswerToolCalls, PlainTextHasNone) {
  EXPECT_THAT(answer_tool_calls(""), IsEmpty());
  EXPECT_THAT(answer_tool_calls("<tool_call>\n{\"name\": \"bash\"}\n</tool_call>"), IsEmpty());
}

TEST(AnswerToolCalls, HostileRepetitionTakesLinearTime) {
  std::string names, values;
  for (int i = 0; i < 200000; ++i) names += "<function=";
  for (int i = 0; i < 100000; ++i) values += "<function=f><parameter=p>";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(answer_tool_calls(names), IsEmpty());
  EXPECT_THAT(answer_tool_calls(values), IsEmpty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace espalier
