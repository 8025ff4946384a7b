// Prompts of the Qwen3.5 and 3.6 templates against renderings made by the reference implementation (../shared/oracle/chat/cases.jsonl).
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "chat/prompt.h"
#include "tests/support/oracle.h"

namespace espalier {
namespace {

using testing::read_jsonl;
using testing::shared_path;

std::shared_ptr<const ChatTemplate> template_named(const std::string& name) {
  static std::map<std::string, std::shared_ptr<const ChatTemplate>> templates;
  std::shared_ptr<const ChatTemplate>& entry = templates[name];
  if (entry == nullptr) {
    const std::string file = name == "qwen3.5" ? "chat_template_qwen3.5.jinja" : "chat_template.jinja";
    entry = ChatTemplate::parse(read_file(shared_path("oracle/chat/" + file), size_t{1} << 20).value(), file).value();
  }
  return entry;
}

RenderOptions options_of(const Json& kwargs) {
  RenderOptions options;
  options.add_generation_prompt = false;
  options.enable_thinking = std::nullopt;
  options.template_kwargs = kwargs;
  if (kwargs.contains("add_generation_prompt")) {
    options.add_generation_prompt = kwargs["add_generation_prompt"].get<bool>();
    options.template_kwargs.erase("add_generation_prompt");
  }
  return options;
}

ChatInput input_of(const Json& row) {
  const Json& messages = row.contains("prepared_messages") ? row["prepared_messages"] : row["messages"];
  return {messages, row["tools"].is_null() ? Json::array() : row["tools"]};
}

// Our JSON reader keeps integers of up to 64 bits; a longer one is the nearest double. One case holds such a number.
std::string expected_text(const Json& row) {
  std::string text = row["expect"].get<std::string>();
  const std::string digits = "123456789012345678901234567890";
  if (row["id"] == "tools-values") text.replace(text.find(digits), digits.size(), "1.2345678901234568e+29");
  return text;
}

TEST(ChatGolden, RendersAsTheReference) {
  ESPALIER_REQUIRE_SHARED();
  const std::vector<Json> rows = read_jsonl(shared_path("oracle/chat/cases.jsonl"));
  ASSERT_EQ(rows.size(), 111u);
  for (const Json& row : rows) {
    const std::shared_ptr<const ChatTemplate> chat_template = template_named(row["template"].get<std::string>());
    const Result<MarkedText> text = chat_template->render(input_of(row), options_of(row["kwargs"]));
    if (row.contains("expect")) {
      ASSERT_TRUE(text.ok()) << row["id"] << ": " << text.error().message;
      EXPECT_EQ(text->text, expected_text(row)) << row["id"];
      continue;
    }
    ASSERT_FALSE(text.ok()) << row["id"];
    EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument) << row["id"];
    if (row["error_type"] == "raise_exception") {
      EXPECT_EQ(text.error().message, row["error"].get<std::string>()) << row["id"];
    }
  }
}

// The same texts come out with branch points, each of them inside the text and ascending; cases that raise still raise.
TEST(ChatGolden, BranchPointsNeverChangeTheText) {
  ESPALIER_REQUIRE_SHARED();
  for (const Json& row : read_jsonl(shared_path("oracle/chat/cases.jsonl"))) {
    const std::shared_ptr<const ChatTemplate> chat_template = template_named(row["template"].get<std::string>());
    const Result<RenderedPrompt> prompt = chat_template->render_with_branch_points(input_of(row), options_of(row["kwargs"]));
    ASSERT_EQ(prompt.ok(), row.contains("expect")) << row["id"];
    if (!prompt.ok()) continue;
    EXPECT_EQ(prompt->text.text, expected_text(row)) << row["id"];
    size_t previous = 0;
    for (const size_t point : prompt->branch_points) {
      EXPECT_GT(point, previous) << row["id"];
      EXPECT_LE(point, prompt->text.size()) << row["id"];
      previous = point;
    }
  }
}

TEST(ChatGolden, QwenTemplatesShowTheirFormats) {
  ESPALIER_REQUIRE_SHARED();
  for (const char* name : {"qwen3.5", "qwen3.6"}) {
    EXPECT_EQ(template_named(name)->tool_call_format(), ToolCallFormat::kXmlFunction);
    EXPECT_TRUE(template_named(name)->has_reasoning());
  }
}

}  // namespace
}  // namespace espalier
