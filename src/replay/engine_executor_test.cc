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

Json calls(std::string_view text) { return answer_tool_calls(text, ToolCallFormat::kXmlFunction, bash_tool()); }

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
  EXPECT_THAT(answer_tool_calls(text, ToolCallFormat::kXmlFunction, Json()), IsEmpty());
  EXPECT_THAT(answer_tool_calls(text, ToolCallFormat::kNone, bash_tool()), IsEmpty());
}

}  // namespace
}  // namespace espalier
