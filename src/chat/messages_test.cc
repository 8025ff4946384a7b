#include "chat/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::HasSubstr;

Json json(std::string_view text) { return parse_json(text, "test").value(); }

Json messages_of(std::string_view messages) { return normalise_messages(json(messages), nullptr).value().messages; }

std::string error_of(std::string_view messages, const MessageLimits& limits = {}) {
  const Result<ChatInput> result = normalise_messages(json(messages), nullptr, limits);
  if (result.ok()) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  return result.error().message;
}

TEST(Messages, PlainTurnsStayAsTheyAre) {
  const std::string turns = R"([{"role":"system","content":"s"},{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}])";
  EXPECT_EQ(messages_of(turns), json(turns));
}

TEST(Messages, DeveloperIsSystem) {
  EXPECT_EQ(messages_of(R"([{"role":"developer","content":"be brief"},{"role":"user","content":"hi"}])"),
            json(R"([{"role":"system","content":"be brief"},{"role":"user","content":"hi"}])"));
}

TEST(Messages, LeadingSystemMessagesBecomeOne) {
  EXPECT_EQ(messages_of(R"([{"role":"system","content":"a"},{"role":"developer","content":[{"type":"text","text":"b"}]},
                            {"role":"system","content":""},{"role":"user","content":"hi"}])"),
            json(R"([{"role":"system","content":"a\n\nb"},{"role":"user","content":"hi"}])"));
}

TEST(Messages, LaterSystemMessageBecomesAUserTurnWhereItStands) {
  EXPECT_EQ(messages_of(R"([{"role":"user","content":"hi"},{"role":"assistant","content":"ho"},{"role":"system","content":"now"},
                            {"role":"user","content":"go"}])"),
            json(R"([{"role":"user","content":"hi"},{"role":"assistant","content":"ho"},{"role":"user","content":"now"},
                     {"role":"user","content":"go"}])"));
}

// A conversation that grows keeps its beginning, whatever comes next: cached text does not move.
TEST(Messages, LongerConversationBeginsWithTheShorterOne) {
  const Json turns = json(R"([{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"system","content":"t"},
                              {"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},
                              {"role":"tool","content":"r"},{"role":"developer","content":"d"},{"role":"user","content":"v"}])");
  Json shorter = Json::array();
  Json previous = Json::array();
  for (const Json& turn : turns) {
    shorter.push_back(turn);
    const Json normalised = normalise_messages(shorter, nullptr).value().messages;
    ASSERT_EQ(normalised.size(), shorter.size());
    for (size_t i = 0; i < previous.size(); ++i) EXPECT_EQ(normalised[i], previous[i]);
    previous = normalised;
  }
}

TEST(Messages, TextPartsAreJoined) {
  EXPECT_EQ(messages_of(R"([{"role":"user","content":[{"type":"text","text":"a"},{"text":"b"},"c",{"type":"input_text","text":"d"}]}])"),
            json(R"([{"role":"user","content":"abcd"}])"));
}

class AssistantContent : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(AssistantContent, IsAcceptedWithAndWithoutToolCalls) {
  const auto& [member, expected] = GetParam();
  const std::string calls = R"("tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}])";
  for (const bool with_calls : {false, true}) {
    std::string message = std::string(R"({"role":"assistant")") + member + (with_calls ? "," + calls : "") + "}";
    const Json result = messages_of(R"([{"role":"user","content":"x"},)" + message + "]")[1];
    EXPECT_EQ(result.contains("content") ? dump_json(result["content"]) : "missing", expected);
    EXPECT_EQ(result.contains("tool_calls"), with_calls);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AssistantContent,
                         ::testing::Values(std::pair{R"(,"content":"")", R"("")"}, std::pair{R"(,"content":null)", "null"},
                                           std::pair{"", "missing"}, std::pair{R"(,"content":[])", R"("")"}));

TEST(Messages, ReasoningAloneIsAnAssistantMessage) {
  EXPECT_EQ(messages_of(R"([{"role":"user","content":"x"},{"role":"assistant","reasoning":"r"}])")[1],
            json(R"({"role":"assistant","reasoning_content":"r"})"));
  EXPECT_EQ(messages_of(R"([{"role":"user","content":"x"},{"role":"assistant","reasoning_content":"r","reasoning":"q"}])")[1],
            json(R"({"role":"assistant","reasoning_content":"r"})"));
}

TEST(Messages, UsersCannotCarryReasoningOrCalls) {
  EXPECT_EQ(messages_of(R"([{"role":"user","content":"x","reasoning_content":"r","tool_calls":[]}])"),
            json(R"([{"role":"user","content":"x"}])"));
}

Json arguments_after(const std::string& arguments) {
  return messages_of(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":)" + arguments +
                     "}}]}]")[0]["tool_calls"][0]["function"]["arguments"];
}

TEST(Messages, ArgumentTextBecomesAnObjectInItsOrder) {
  EXPECT_EQ(dump_json(arguments_after(R"("{\"z\":1,\"a\":1.0,\"m\":null}")")), R"({"z":1,"a":1.0,"m":null})");
  EXPECT_EQ(dump_json(arguments_after(R"({"z":1,"a":[2]})")), R"({"z":1,"a":[2]})");
}

TEST(Messages, ArgumentsThatAreNoObjectAreWrapped) {
  EXPECT_EQ(dump_json(arguments_after(R"("{\"cut\": ")")), R"({"arguments":"{\"cut\": "})");
  EXPECT_EQ(dump_json(arguments_after(R"("[1]")")), R"({"arguments":"[1]"})");
  EXPECT_EQ(dump_json(arguments_after("[1]")), R"({"arguments":[1]})");
  EXPECT_EQ(dump_json(arguments_after("null")), "{}");
  EXPECT_EQ(dump_json(arguments_after(R"("")")), "{}");
}

TEST(Messages, ToolResultsKeepTheirCall) {
  EXPECT_EQ(messages_of(R"([{"role":"tool","tool_call_id":"c1","name":"f","content":"r"}])"),
            json(R"([{"role":"tool","content":"r","tool_call_id":"c1","name":"f"}])"));
}

TEST(Messages, ErrorsNameThePlace) {
  EXPECT_THAT(error_of("{}"), HasSubstr("messages: expected a list"));
  EXPECT_THAT(error_of("[5]"), HasSubstr("messages[0]: expected an object"));
  EXPECT_THAT(error_of(R"([{"content":"x"}])"), HasSubstr("messages[0].role: missing"));
  EXPECT_THAT(error_of(R"([{"role":"function","content":"x"}])"), HasSubstr("messages[0].role"));
  EXPECT_THAT(error_of(R"([{"role":"user","content":"x"},{"role":"user","content":5}])"), HasSubstr("messages[1].content: expected"));
  EXPECT_THAT(error_of(R"([{"role":"user","content":[{"type":"image_url"}]}])"), HasSubstr("messages[0].content[0].type"));
  EXPECT_THAT(error_of(R"([{"role":"user","content":[{"type":"text"}]}])"), HasSubstr("messages[0].content[0].text: missing"));
  EXPECT_THAT(error_of(R"([{"role":"assistant","tool_calls":{}}])"), HasSubstr("messages[0].tool_calls: expected a list"));
  EXPECT_THAT(error_of(R"([{"role":"assistant","tool_calls":[{"function":{}}]}])"),
              HasSubstr("messages[0].tool_calls[0].function.name: missing"));
  EXPECT_THAT(error_of(R"([{"role":"tool","tool_call_id":5}])"), HasSubstr("messages[0].tool_call_id"));
  EXPECT_THAT(error_of(R"([{"role":"a\nb"}])"), HasSubstr("messages[0].role"));
}

TEST(Messages, LimitsAreErrors) {
  MessageLimits limits;
  limits.max_messages = 1;
  EXPECT_THAT(error_of(R"([{"role":"user"},{"role":"user"}])", limits), HasSubstr("at most 1"));
  limits = {};
  limits.max_bytes = 100;
  EXPECT_THAT(error_of(R"([{"role":"user","content":")" + std::string(200, 'x') + R"("}])", limits), HasSubstr("more than 100 bytes"));
  limits = {};
  limits.max_depth = 4;
  EXPECT_THAT(error_of(R"([{"role":"user","content":[{"text":[[1]]}]}])", limits), HasSubstr("nested deeper than 4"));
  limits = {};
  limits.max_tools = 1;
  EXPECT_THAT(normalise_messages(Json::array(), json("[{},{}]"), limits).error().message, HasSubstr("tools: expected at most 1"));
}

// Field case J5: a deep tool schema is refused as a bad request before anything walks it.
TEST(Messages, DeepToolSchemaIsRefused) {
  Json schema = Json::object();
  for (int i = 0; i < 100; ++i) schema = Json::object({{"properties", std::move(schema)}});
  Json tools = Json::array();
  tools.push_back(std::move(schema));
  const Result<ChatInput> result = normalise_messages(Json::array(), tools);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr("tools[0]: nested deeper than 64 levels"));
}

TEST(Messages, ToolsStayAndMayBeAbsent) {
  const Json tools = json(R"([{"type":"function","function":{"name":"f"}}])");
  EXPECT_EQ(normalise_messages(Json::array(), tools).value().tools, tools);
  EXPECT_EQ(normalise_messages(Json::array(), nullptr).value().tools, Json::array());
  EXPECT_FALSE(normalise_messages(Json::array(), Json::object()).ok());
  EXPECT_FALSE(normalise_messages(Json::array(), json("[1]")).ok());
}

// Bytes that are not UTF-8 cannot reach the tokenizer as text.
TEST(Messages, InvalidUtf8IsReplaced) {
  Json messages = Json::array();
  messages.push_back({{"role", "user"}, {"content", "a\xFFz"}});
  EXPECT_EQ(normalise_messages(messages, nullptr).value().messages[0]["content"], "a\xEF\xBF\xBDz");
}

}  // namespace
}  // namespace espalier
