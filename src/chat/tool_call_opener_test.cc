#include "chat/tool_call_opener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kOne = {"bash"};
const std::vector<std::string> kTwo = {"bash", "edit"};

TEST(ToolCallOpener, OneToolIsNamedAtOnce) {
  const ToolCallOpener opener = tool_call_opener(ToolCallFormat::kXmlFunction, kOne, false);
  EXPECT_EQ(opener.text, "<tool_call>\n<function=bash>\n");
  EXPECT_THAT(opener.choices, IsEmpty());
}

TEST(ToolCallOpener, OfSeveralToolsTheModelPicksOne) {
  const ToolCallOpener opener = tool_call_opener(ToolCallFormat::kXmlFunction, kTwo, false);
  EXPECT_EQ(opener.text, "<tool_call>\n<function=");
  EXPECT_THAT(opener.choices, ElementsAre("bash>\n", "edit>\n"));
}

TEST(ToolCallOpener, JsonCallsNameTheToolAsAString) {
  EXPECT_EQ(tool_call_opener(ToolCallFormat::kJsonFunction, kOne, false).text, "<tool_call>\n{\"name\": \"bash\", \"arguments\": ");
  EXPECT_THAT(tool_call_opener(ToolCallFormat::kJsonFunction, kTwo, false).choices,
              ElementsAre("\"bash\", \"arguments\": ", "\"edit\", \"arguments\": "));
}

TEST(ToolCallOpener, LeavesAnOpenThinkBlockFirst) {
  EXPECT_EQ(tool_call_opener(ToolCallFormat::kXmlFunction, kOne, true).text, "\n</think>\n\n<tool_call>\n<function=bash>\n");
}

TEST(ToolCallOpener, TemplatesWithoutCallsHaveNone) { EXPECT_EQ(tool_call_opener(ToolCallFormat::kNone, kOne, true).text, ""); }

}  // namespace
}  // namespace espalier
