#include "replay/iou.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json bash_call(const Json& arguments, const char* name = "bash") {
  return Json{{"id", "x"}, {"type", "function"}, {"function", Json{{"name", name}, {"arguments", arguments}}}};
}

std::vector<std::string> actions_of_arguments(const Json& arguments) { return tool_call_actions(Json::array({bash_call(arguments)})); }

TEST(CommandActions, ProgramsOfPipelinesAndSequences) {
  EXPECT_THAT(command_actions("cd /testbed && grep -rn foo . | head -5; ls || true\nwc -l x"), ElementsAre("grep", "head", "ls", "true", "wc"));
  EXPECT_THAT(command_actions("ls & cat a"), ElementsAre("ls"));
  EXPECT_THAT(command_actions("ls &&& cat a"), ElementsAre("ls"));
  EXPECT_THAT(command_actions(""), IsEmpty());
  EXPECT_THAT(command_actions(" ;; | && "), IsEmpty());
}

TEST(CommandActions, PathsCaseAndVersionsDoNotCount) {
  EXPECT_THAT(command_actions("/usr/bin/Python3.8 x; python3.11.2 x; pip3.9 x"), ElementsAre("python", "python", "pip"));
  EXPECT_THAT(command_actions("python.1.2.3"), IsEmpty());  // only one version goes: "python.1" stays
  EXPECT_THAT(command_actions("python3. x; python3.x; ls/"), IsEmpty());
}

TEST(CommandActions, PrefixesAreDropped) {
  EXPECT_THAT(command_actions("A=1 _b2=x sudo env C= nice time exec command ls"), ElementsAre("ls"));
  EXPECT_THAT(command_actions("SUDO ls; 1A=2 ls; =x ls; sudo; A=1"), IsEmpty());
}

TEST(CommandActions, QuotedTextIsCutOut) {
  EXPECT_THAT(command_actions("grep 'a|cat' x; echo \"; ls \\\" ; wc\"; echo `rm -rf x`; tail y"), ElementsAre("grep", "tail"));
  EXPECT_THAT(command_actions("FOO='a b' ls"), ElementsAre("ls"));
  EXPECT_THAT(command_actions("echo 'a\nls\nb'; cat x"), ElementsAre("cat"));
  EXPECT_THAT(command_actions("cat 'x\" ; ls' \"'\" ; wc"), ElementsAre("cat", "wc"));
}

TEST(CommandActions, AQuoteThatDoesNotCloseIsAnOrdinaryCharacter) {
  EXPECT_THAT(command_actions("echo don't; ls"), ElementsAre("ls"));
  EXPECT_THAT(command_actions("echo \"x; ls"), ElementsAre("ls"));
  EXPECT_THAT(command_actions("echo `x; ls"), ElementsAre("ls"));
  EXPECT_THAT(command_actions("echo \"a\\\nb\"; ls"), ElementsAre("ls"));                  // `"` at b closes nothing that was opened
  EXPECT_THAT(command_actions("echo \"a\\\nb\"; ls; echo \"; cat x"), ElementsAre("cat"));  // there it opens a stretch that swallows ls
}

TEST(CommandActions, WordsEndAtUnicodeSpacesAndCarriageReturns) {
  EXPECT_THAT(command_actions("ls\r\ncat\u00a0x; wc\u3000y; \u2028head"), ElementsAre("ls", "cat", "wc", "head"));
  EXPECT_THAT(command_actions("ls\xff; cat\x85; wc"), ElementsAre("wc"));
}

TEST(CommandActions, EscapedQuotesWithoutEndTakeLinearTime) {
  std::string hostile;
  for (int i = 0; i < 500000; ++i) hostile += "\\\"";
  for (int i = 0; i < 1000; ++i) hostile += "\"\\\n";
  const auto start = std::chrono::steady_clock::now();
  command_actions(hostile + "'");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(ToolCallActions, AllCallsOfBashCount) {
  const Json calls = Json::array({bash_call(R"({"command":"ls; cat a"})"), bash_call(Json{{"cmd", "git diff"}})});
  EXPECT_THAT(tool_call_actions(calls), ElementsAre("ls", "cat", "git"));
}

TEST(ToolCallActions, WhatIsMalformedIsSkippedAlone) {
  Json calls = Json::array({nullptr, 7, "bash", Json::object(), Json{{"function", 7}}, Json{{"function", Json{{"name", "bash"}}}}});
  calls.push_back(bash_call(R"({"command":"cat)"));
  calls.push_back(bash_call(R"(["ls"])"));
  calls.push_back(bash_call(nullptr));
  calls.push_back(bash_call(R"({"command":"wc"})", "execute_bash"));
  calls.push_back(bash_call(R"({"command":"head x"})"));
  EXPECT_THAT(tool_call_actions(calls), ElementsAre("head"));
  EXPECT_THAT(tool_call_actions(nullptr), IsEmpty());
  EXPECT_THAT(tool_call_actions(Json::object()), IsEmpty());
}

TEST(ToolCallActions, CmdStandsInForACommandThatIsFalse) {
  for (const char* nothing : {"\"\"", "null", "0", "0.0", "false", "[]", "{}"}) {
    EXPECT_THAT(actions_of_arguments(std::string(R"({"cmd":"ls","command":)") + nothing + "}"), ElementsAre("ls")) << nothing;
  }
  for (const char* not_text : {"1", "true", "[0]", "{\"a\":1}"}) {
    EXPECT_THAT(actions_of_arguments(std::string(R"({"cmd":"ls","command":)") + not_text + "}"), IsEmpty()) << not_text;
  }
}

TEST(MultisetIou, CountsEachAction) {
  using Actions = std::vector<std::string>;
  EXPECT_DOUBLE_EQ(multiset_iou(Actions{"cat", "cat", "cat"}, Actions{"cat", "cat", "head", "cat", "cat"}), 0.6);
  EXPECT_DOUBLE_EQ(multiset_iou(Actions{"ls"}, Actions{}), 0.0);
  EXPECT_DOUBLE_EQ(multiset_iou(Actions{"ls", "cat"}, Actions{"cat", "ls"}), 1.0);
  EXPECT_DOUBLE_EQ(multiset_iou(Actions{}, Actions{}), 0.0);
}

TEST(SummariseIou, MissingTurnsScoreNothingAndTurnsWithoutRecordedActionsAreLeftOut) {
  const std::vector<TurnScore> turns{{.conversation_id = "a", .turn = 1, .recorded = {"ls"}, .answered = {"ls"}},
                                     {.conversation_id = "a", .turn = 3, .recorded = {"ls"}, .answered = {}},
                                     {.conversation_id = "a", .turn = 5, .recorded = {}, .answered = {"ls"}},
                                     {.conversation_id = "a", .turn = 7, .recorded = {"ls"}, .answered = {"ls"}, .observed = false}};
  const IouSummary summary = summarise_iou(turns);
  EXPECT_EQ(summary.expected, 3);
  EXPECT_EQ(summary.observed, 2);
  EXPECT_EQ(summary.missing, 1);
  EXPECT_EQ(summary.score, 0.3333);
  EXPECT_EQ(summarise_iou({}).expected, 0);
  EXPECT_EQ(summarise_iou({}).score, 0.0);
}

}  // namespace
}  // namespace espalier
