#include "replay/engine_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "replay/iou.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Json& bash_tool() {
  static const Json tools = parse_json(R"([{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{
      "command":{"type":"string"},"timeout":{"type":"integer"}}}}}])",
                                       "tools")
                                .value();
  return tools;
}

TurnOutcome outcome_of(std::string_view text, ToolCallFormat format = ToolCallFormat::kXmlFunction, const Json& tools = bash_tool()) {
  TurnOutcome outcome;
  read_answer(text, format, tools, outcome);
  return outcome;
}

Json calls(std::string_view text) { return outcome_of(text).tool_calls; }

TEST(AnswerToolCalls, HaveOpenAiShapeWithArgumentsAsText) {
  const std::string text = "Look.\n\n<tool_call>\n<function=bash>\n<parameter=command>\nls -la | head\n</parameter>\n<parameter=timeout>\n5\n"
                           "</parameter>\n</function>\n</tool_call>";
  EXPECT_EQ(dump_json(calls(text)),
            R"([{"type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls -la | head\",\"timeout\":5}"}}])");
  EXPECT_THAT(tool_call_actions(calls(text)), ElementsAre("ls", "head"));
  EXPECT_EQ(calls(text + "\n" + text).size(), 2u);
}

TEST(AnswerToolCalls, ACutCallCountsAsFarAsItsClientSeesIt) {
  EXPECT_THAT(calls("<tool_call>\n<function=ba"), IsEmpty());
  EXPECT_THAT(tool_call_actions(calls("<tool_call>\n<function=bash>\n<parameter=comm")), IsEmpty());
  EXPECT_THAT(tool_call_actions(calls("<tool_call>\n<function=bash>\n<parameter=command>\nls\ncat a.p")), ElementsAre("ls", "cat"));
}

TEST(AnswerToolCalls, WithoutToolsThereAreNone) {
  const std::string text = "<tool_call>\n<function=bash>\n</function>\n</tool_call>";
  EXPECT_THAT(outcome_of(text, ToolCallFormat::kXmlFunction, Json()).tool_calls, IsEmpty());
  EXPECT_THAT(outcome_of(text, ToolCallFormat::kNone).tool_calls, IsEmpty());
  EXPECT_EQ(outcome_of(text, ToolCallFormat::kNone).content, text);
}

TEST(AnswerContent, IsTheTextBesideTheCalls) {
  EXPECT_EQ(outcome_of("Look.\n\n<tool_call>\n<function=bash>\n</function>\n</tool_call>").content, "Look.\n\n");
  EXPECT_EQ(outcome_of("All done.").content, "All done.");
}

}  // namespace
}  // namespace espalier
