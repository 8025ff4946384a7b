#include "replay/request_body.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

Workload workload_with(std::string_view content) {
  const std::string row = dump_json(Json{{"conversation_id", "c"}, {"turn", 1}, {"role", "user"}, {"content", content}});
  return parse_workload(row, "w").value();
}

std::string body_with(std::string_view content, const RequestBodyOptions& options = {}) {
  const Workload workload = workload_with(content);
  return request_body(workload.conversations[0], workload.conversations[0].turns[0], options);
}

TEST(RequestBody, FieldsInTheOrderOfTheHarness) {
  EXPECT_EQ(body_with("hi"), R"({"model":"Qwen3.6-27B-Q4_K_M","messages":[{"role":"user","content":"hi"}],)"
                             R"("temperature":0.0,"max_completion_tokens":1024,"stream":true,"seed":42})");
}

TEST(RequestBody, ToolsComeLastWhereThereAreSome) {
  Workload workload = workload_with("hi");
  workload.conversations[0].tools = Json::array({Json{{"type", "function"}}});
  const std::string body = request_body(workload.conversations[0], workload.conversations[0].turns[0]);
  EXPECT_TRUE(body.ends_with(R"("seed":42,"tools":[{"type":"function"}]})")) << body;
}

TEST(RequestBody, OptionsReplaceTheDefaults) {
  EXPECT_EQ(body_with("hi", {.model = "a \"b\"", .temperature = 0.5, .max_completion_tokens = 1, .seed = 7}),
            R"({"model":"a \"b\"","messages":[{"role":"user","content":"hi"}],"temperature":0.5,"max_completion_tokens":1,"stream":true,"seed":7})");
}

TEST(RequestBody, EscapesWhatJsonMustAndNothingElse) {
  const std::string body = body_with("\b\t\n\f\r\"\\/\x01\x1b\x7f é✓🙂");
  EXPECT_NE(body.find(R"("content":"\b\t\n\f\r\"\\/\u0001\u001b)"
                      "\x7f é✓🙂\"}"),
            std::string::npos)
      << body;
}

TEST(RequestBody, ATurnSeesOnlyWhatCameBeforeIt) {
  const Workload workload = parse_workload(R"({"conversation_id":"c","turn":1,"role":"user","content":"1"})"
                                           "\n"
                                           R"({"conversation_id":"c","turn":2,"role":"assistant","content":"2"})"
                                           "\n"
                                           R"({"conversation_id":"c","turn":3,"role":"user","content":"3"})",
                                           "w")
                                .value();
  const Conversation& c = workload.conversations[0];
  EXPECT_EQ(request_body(c, c.turns[0]).find("\"2\""), std::string::npos);
  EXPECT_NE(request_body(c, c.turns[1]).find(R"([{"role":"user","content":"1"},{"role":"assistant","content":"2"},{"role":"user","content":"3"}])"),
            std::string::npos);
}

}  // namespace
}  // namespace espalier
