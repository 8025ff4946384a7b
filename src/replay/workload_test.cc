#include "replay/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "base/format.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kUser = R"({"conversation_id":"c","turn":1,"role":"user","content":"fix it","system":"You help.","tools":[{"type":"function"}]})";
constexpr std::string_view kCall =
    R"({"conversation_id":"c","turn":2,"role":"assistant","reasoning_content":"look","tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"b","type":"function","function":{"name":"bash","arguments":{"command":"pwd"}}}]})";
constexpr std::string_view kResults =
    R"({"conversation_id":"c","turn":3,"role":"tool","tool_results":[{"tool_call_id":"a","content":"x"},{"tool_call_id":"b","content":"y"}],"delay_seconds":0.5})";
constexpr std::string_view kText = R"({"conversation_id":"c","turn":4,"role":"assistant","content":"done"})";

std::string lines(std::initializer_list<std::string_view> rows) {
  std::string text;
  for (const std::string_view row : rows) text += std::string(row) + "\n";
  return text;
}

std::string failure(const std::string& text, ErrorCode code = ErrorCode::kCorrupt, const WorkloadLimits& limits = {}) {
  const Result<Workload> read = parse_workload(text, "w.jsonl", limits);
  EXPECT_FALSE(read.ok()) << text;
  if (read.ok()) return "";
  EXPECT_EQ(read.error().code, code);
  EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  return read.error().message;
}

TEST(Workload, TurnsAreUserAndToolRowsAndSeeEverythingBefore) {
  const Workload workload = parse_workload(lines({kUser, kCall, kResults, kText}), "w").value();
  ASSERT_EQ(workload.conversations.size(), 1u);
  const Conversation& c = workload.conversations[0];
  EXPECT_EQ(c.id, "c");
  EXPECT_EQ(dump_json(c.tools), R"([{"type":"function"}])");
  ASSERT_EQ(c.turns.size(), 2u);
  EXPECT_EQ(workload.num_turns(), 2u);
  EXPECT_EQ(c.turns[0].number, 1);
  EXPECT_EQ(c.turns[0].num_messages, 2u);
  EXPECT_EQ(c.turns[1].number, 3);
  EXPECT_EQ(c.turns[1].num_messages, 5u);
  EXPECT_EQ(dump_json(c.messages[0]), R"({"role":"system","content":"You help."})");
  EXPECT_EQ(dump_json(c.messages[1]), R"({"role":"user","content":"fix it"})");
  EXPECT_EQ(dump_json(c.messages[4]), R"({"role":"tool","content":"y","tool_call_id":"b"})");
}

TEST(Workload, RecordedAnswersStayAsTheyWereWithoutInventedKeys) {
  const Workload workload = parse_workload(lines({kUser, kCall, kResults, kText}), "w").value();
  const Conversation& c = workload.conversations[0];
  EXPECT_EQ(dump_json(*c.recorded_answer(c.turns[0])),
            R"({"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},)"
            R"({"id":"b","type":"function","function":{"name":"bash","arguments":{"command":"pwd"}}}],"reasoning_content":"look"})");
  EXPECT_EQ(dump_json(*c.recorded_answer(c.turns[1])), R"({"role":"assistant","content":"done"})");
}

TEST(Workload, MayEndBeforeTheAnswer) {
  const Workload workload = parse_workload(lines({kUser, kCall, kResults}), "w").value();
  const Conversation& c = workload.conversations[0];
  ASSERT_EQ(c.turns.size(), 2u);
  EXPECT_EQ(c.recorded_answer(c.turns[1]), nullptr);
}

TEST(Workload, NullsAreAbsent) {
  const auto workload = parse_workload(
      R"({"conversation_id":"c","turn":1,"role":"user","content":"q","system":null,"tools":null})"
      "\n"
      R"({"conversation_id":"c","turn":2,"role":"assistant","content":"a","tool_calls":null,"reasoning_content":null})",
      "w");
  ASSERT_TRUE(workload.ok()) << workload.error().message;
  const Conversation& c = workload->conversations[0];
  EXPECT_TRUE(c.tools.is_null());
  ASSERT_EQ(c.messages.size(), 2u);
  EXPECT_EQ(dump_json(c.messages[1]), R"({"role":"assistant","content":"a"})");
}

TEST(Workload, TheFirstNonEmptySystemTextIsTheOneOfAllTurns) {
  const Workload workload = parse_workload(lines({R"({"conversation_id":"c","turn":1,"role":"user","content":"q","system":""})",
                                                  R"({"conversation_id":"c","turn":2,"role":"assistant","content":"a","system":"late"})"}),
                                           "w")
                                .value();
  const Conversation& c = workload.conversations[0];
  EXPECT_EQ(dump_json(c.messages[0]), R"({"role":"system","content":"late"})");
  EXPECT_EQ(c.turns[0].num_messages, 2u);
}

TEST(Workload, SkipsMetadataAndEmptyLinesAndKeepsTheFileOrder) {
  const std::string text = lines({R"({"_type":"dataset_metadata","anything":1})", "", " \r",
                                  R"({"conversation_id":"z","turn":1,"role":"user","content":"1"})",
                                  R"({"conversation_id":"a","turn":1,"role":"user","content":"2"})"});
  const Workload workload = parse_workload(text, "w").value();
  ASSERT_EQ(workload.conversations.size(), 2u);
  EXPECT_EQ(workload.conversations[0].id, "z");
  EXPECT_EQ(workload.conversations[1].id, "a");
}

TEST(Workload, ErrorsNameFileAndLine) {
  EXPECT_THAT(failure(lines({kUser, "{\"conversation_id\":"})), StartsWith("w.jsonl:2: not valid JSON"));
  EXPECT_THAT(failure(lines({kUser, "", "[1]"})), StartsWith("w.jsonl:3: expected a JSON object, found array"));
  EXPECT_THAT(failure(""), StartsWith("w.jsonl: no conversation"));
}

struct BadRows {
  const char* name;
  std::string text;
  const char* message;
  ErrorCode code = ErrorCode::kCorrupt;
};
void PrintTo(const BadRows& rows, std::ostream* out) { *out << rows.name; }

class RefusedWorkload : public ::testing::TestWithParam<BadRows> {};

TEST_P(RefusedWorkload, WithTheReason) { EXPECT_THAT(failure(GetParam().text, GetParam().code), HasSubstr(GetParam().message)); }

std::string row(std::string_view rest) { return format("{{\"conversation_id\":\"c\",{}}}", rest); }

INSTANTIATE_TEST_SUITE_P(
    Rows, RefusedWorkload,
    ::testing::Values(
        BadRows{"no_id", R"({"turn":1,"role":"user","content":"q"})", "'conversation_id' must be a string"},
        BadRows{"empty_id", R"({"conversation_id":"","turn":1})", "printable ASCII"},
        BadRows{"id_not_ascii", R"({"conversation_id":"é","turn":1})", "printable ASCII"},
        BadRows{"id_with_newline", R"({"conversation_id":"a\nb","turn":1})", "printable ASCII"},
        BadRows{"turn_missing", row(R"("role":"user","content":"q")"), "'turn' is missing"},
        BadRows{"turn_text", row(R"("turn":"1","role":"user","content":"q")"), "'turn' must be an integer"},
        BadRows{"turn_from_zero", row(R"("turn":0,"role":"user","content":"q")"), "turn 0 of 'c', expected 1"},
        BadRows{"turn_gap", lines({kUser, row(R"("turn":3,"role":"assistant","content":"a")")}), "turn 3 of 'c', expected 2"},
        BadRows{"interrupted", lines({kUser, R"({"conversation_id":"d","turn":1,"role":"user","content":"q"})", kCall}),
                "w.jsonl:3: conversation 'c' began at line 1"},
        BadRows{"role_unknown", row(R"("turn":1,"role":"system","content":"q")"), "'role' must be"},
        BadRows{"begins_with_assistant", row(R"("turn":1,"role":"assistant","content":"q")"), "must follow a user or tool row"},
        BadRows{"begins_with_tool", row(R"("turn":1,"role":"tool","tool_results":[])"), "must follow an assistant row with calls"},
        BadRows{"user_after_user", lines({kUser, row(R"("turn":2,"role":"user","content":"q")")}), "must open the conversation"},
        BadRows{"user_after_calls", lines({kUser, kCall, row(R"("turn":3,"role":"user","content":"q")")}), "no results"},
        BadRows{"tool_after_text", lines({kUser, kCall, kResults, kText, row(R"("turn":5,"role":"tool","tool_results":[{}])")}), "with calls"},
        BadRows{"tool_results_empty", lines({kUser, kCall, row(R"("turn":3,"role":"tool","tool_results":[])")}), "non-empty array"},
        BadRows{"tool_result_without_id", lines({kUser, kCall, row(R"("turn":3,"role":"tool","tool_results":[{"content":"x"}])")}), "tool_results[0]"},
        BadRows{"user_content_list", row(R"("turn":1,"role":"user","content":[])"), "'content' of a user row"},
        BadRows{"assistant_empty", lines({kUser, row(R"("turn":2,"role":"assistant","tool_calls":[])")}), "needs 'content' or 'tool_calls'"},
        BadRows{"assistant_content_number", lines({kUser, row(R"("turn":2,"role":"assistant","content":7)")}), "must be a string, found number"},
        BadRows{"call_without_function", lines({kUser, row(R"("turn":2,"role":"assistant","tool_calls":[7])")}), "tool_calls[0]"},
        BadRows{"call_arguments_number", lines({kUser, row(R"("turn":2,"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":7}}])")}),
                "must be a string or an object"},
        BadRows{"tools_object", row(R"("turn":1,"role":"user","content":"q","tools":{})"), "'tools' must be an array"},
        BadRows{"tools_change", lines({kUser, kCall, row(R"("turn":3,"role":"tool","tool_results":[{}],"tools":[])")}), "first row", ErrorCode::kUnsupported},
        BadRows{"own_model", row(R"("turn":1,"role":"user","content":"q","model":"m")"), "'model' in a row is not supported", ErrorCode::kUnsupported}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(Workload, LimitsAreErrors) {
  const std::string text = lines({kUser});
  EXPECT_THAT(failure(text, ErrorCode::kResourceExhausted, {.max_bytes = 20}), HasSubstr("exceed the limit of 20"));
  EXPECT_THAT(failure(text, ErrorCode::kResourceExhausted, {.max_line_bytes = 20}), AllOf(StartsWith("w.jsonl:1: "), HasSubstr("limit of 20")));
  const std::string deep = R"({"conversation_id":"c","turn":1,"role":"user","content":"q","tools":)" + std::string(100000, '[');
  EXPECT_THAT(failure(deep), HasSubstr("nested deeper"));
}

TEST(Workload, AMissingFileIsNamed) {
  const Result<Workload> read = load_workload("/nonexistent/workload.jsonl");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(read.error().message, HasSubstr("/nonexistent/workload.jsonl"));
}

}  // namespace
}  // namespace espalier
