#include "server/chat_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chat/tool_schemas.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::string_view kTools =
    R"([{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{"command":{"type":"string"}}}}},
        {"type":"function","function":{"name":"edit"}}])";

Json body_with(std::string_view members) {
  return parse_json(R"({"messages":[{"role":"user","content":"hi"}])" + std::string(members.empty() ? "" : ",") + std::string(members) + "}", "test").value();
}
Result<ChatRequest> read(std::string_view members, Thinking thinking = Thinking::kOff, const RequestLimits& limits = {}) {
  return read_chat_request(body_with(members), limits, {}, thinking);
}
std::string refusal(std::string_view members, const RequestLimits& limits = {}) {
  const Result<ChatRequest> chat = read(members, Thinking::kOff, limits);
  EXPECT_FALSE(chat.ok()) << members;
  return chat.ok() ? "" : chat.error().message;
}

TEST(ChatRequest, ReadsWhatTheHarnessSends) {
  const ChatRequest chat = read(R"("model":"m","temperature":0.0,"max_completion_tokens":1024,"stream":true,"seed":42,"tools":)" + std::string(kTools)).value();
  EXPECT_EQ(chat.model, "m");
  EXPECT_EQ(chat.request.sampling.temperature, 0.0);
  EXPECT_EQ(chat.request.max_new_tokens, 1024);
  EXPECT_EQ(chat.request.sampling.seed, 42u);
  EXPECT_TRUE(chat.stream.stream);
  EXPECT_FALSE(chat.stream.include_usage);
  ASSERT_NE(chat.tools, nullptr);
  EXPECT_TRUE(chat.tools->declares("bash"));
  EXPECT_TRUE(chat.parallel_tool_calls);
  EXPECT_EQ(chat.render.enable_thinking, false);
  EXPECT_THAT(chat.unknown_fields, IsEmpty());
}

TEST(ChatRequest, DefaultsAreTheModelsThenTheApis) {
  EXPECT_EQ(read("")->request.sampling.temperature, 1.0);
  SamplingDefaults defaults;
  defaults.temperature = 0.6;
  defaults.top_k = 20;
  const ChatRequest chat = read_chat_request(body_with(R"("top_k":-1)"), {}, defaults, Thinking::kOff).value();
  EXPECT_EQ(chat.request.sampling.temperature, 0.6);
  EXPECT_EQ(chat.request.sampling.top_k, 0);
  EXPECT_EQ(chat.request.max_new_tokens, -1);
}

TEST(ChatRequest, TheNewerNameOfTheTokenLimitWins) {
  EXPECT_EQ(read(R"("max_tokens":5)")->request.max_new_tokens, 5);
  EXPECT_EQ(read(R"("max_tokens":5,"max_completion_tokens":7)")->request.max_new_tokens, 7);
}

// L1, L2.
TEST(ChatRequest, AbsurdValuesAreRefusedByName) {
  EXPECT_THAT(refusal(R"("n":1000000000)"), StartsWith("n: expected an integer in [1, 16]"));
  EXPECT_THAT(refusal(R"("n":0)"), StartsWith("n: "));
  EXPECT_THAT(refusal(R"("n":-1)"), StartsWith("n: "));
  EXPECT_THAT(refusal(R"("max_tokens":0)"), StartsWith("max_tokens: "));
  EXPECT_THAT(refusal(R"("max_tokens":-5)"), StartsWith("max_tokens: "));
  EXPECT_THAT(refusal(R"("max_tokens":1e300)"), StartsWith("max_tokens: "));
  EXPECT_THAT(refusal(R"("temperature":-0.1)"), StartsWith("temperature: "));
  EXPECT_THAT(refusal(R"("top_p":2)"), StartsWith("top_p: "));
  EXPECT_THAT(refusal(R"("seed":1.5)"), StartsWith("seed: "));
  EXPECT_THAT(refusal(R"("stop":[1])"), StartsWith("stop[0]: "));
  EXPECT_THAT(refusal(R"("stop":")" + std::string(2000, 'x') + "\""), StartsWith("stop: expected at most 1024 bytes"));
  EXPECT_THAT(refusal(R"("logit_bias":{"x":1})"), StartsWith("logit_bias: "));
  EXPECT_THAT(refusal(R"("logit_bias":{"5":1e9})"), StartsWith("logit_bias.5: "));
  EXPECT_THAT(refusal(R"("top_logprobs":3)"), StartsWith("top_logprobs: "));
  EXPECT_THAT(refusal(R"("stream":"yes")"), StartsWith("stream: "));
  EXPECT_THAT(refusal(R"("tools":{})"), StartsWith("tools: "));
  RequestLimits limits;
  limits.max_stops = 2;
  EXPECT_THAT(refusal(R"("stop":["a","b","c"])", limits), StartsWith("stop: expected at most 2"));
  limits.messages.max_messages = 0;
  EXPECT_THAT(refusal("", limits), StartsWith("messages: expected at most 0"));
}

TEST(ChatRequest, MessagesAreNeeded) {
  EXPECT_THAT(read_chat_request(Json::object(), {}, {}, Thinking::kOff).error().message, StartsWith("messages: missing"));
  EXPECT_THAT(read_chat_request(Json{{"messages", Json::array()}}, {}, {}, Thinking::kOff).error().message, StartsWith("messages: expected at least one"));
  EXPECT_THAT(read_chat_request(Json::array(), {}, {}, Thinking::kOff).error().message, StartsWith("the body must be a JSON object"));
}

TEST(ChatRequest, WhatIsNotSupportedIsRefusedByName) {
  for (const char* member : {R"("functions":[])", R"("guided_json":{})", R"("response_format":{"type":"json_object"})", R"("audio":{})", R"("best_of":3)", R"("modalities":["text","audio"])"}) {
    const Result<ChatRequest> chat = read(member);
    ASSERT_FALSE(chat.ok()) << member;
    EXPECT_EQ(chat.error().code, ErrorCode::kUnsupported) << member;
  }
  EXPECT_TRUE(read(R"("response_format":{"type":"text"},"modalities":["text"],"best_of":1,"functions":null)").ok());
}

TEST(ChatRequest, UnknownFieldsAreNamedAndIgnored) {
  EXPECT_THAT(read(R"("user":"u","metadata":{},"frobnicate":1,"cache_prompt":true)")->unknown_fields, ElementsAre("frobnicate"));
}

// E4: request, then flag, then template.
TEST(ChatRequest, ThinkingIsTheRequestsThenTheServersThenTheTemplates) {
  struct Case {
    const char* members;
    Thinking flag;
    std::optional<bool> thinking;
  };
  const Case cases[] = {
      {"", Thinking::kOff, false},
      {"", Thinking::kOn, true},
      {"", Thinking::kTemplate, std::nullopt},
      {R"("reasoning_effort":"high")", Thinking::kOff, true},
      {R"("reasoning_effort":"none")", Thinking::kOn, false},
      {R"("reasoning_effort":"minimal")", Thinking::kTemplate, false},
      {R"("enable_thinking":true,"reasoning_effort":"none")", Thinking::kOff, true},
  };
  for (const Case& c : cases) EXPECT_EQ(read(c.members, c.flag)->render.enable_thinking, c.thinking) << c.members;
  EXPECT_EQ(read(R"("chat_template_kwargs":{"enable_thinking":true})")->render.template_kwargs["enable_thinking"], true);
  EXPECT_THAT(refusal(R"("chat_template_kwargs":{"enable_thinking":"yes"})"), StartsWith("chat_template_kwargs.enable_thinking: "));
  EXPECT_THAT(refusal(R"("reasoning_effort":"gigantic")"), StartsWith("reasoning_effort: "));
}

TEST(ChatRequest, ToolChoices) {
  const std::string tools = R"("tools":)" + std::string(kTools);
  EXPECT_NE(read(tools)->tools, nullptr);
  EXPECT_NE(read(tools + R"(,"tool_choice":"auto")")->tools, nullptr);
  const ChatRequest none = read(tools + R"(,"tool_choice":"none")").value();
  EXPECT_EQ(none.tools, nullptr);
  EXPECT_TRUE(none.suppress_calls);
  EXPECT_EQ(none.input.tools.size(), 2u) << "the prompt keeps them, and stays hot";
  EXPECT_THAT(read(tools + R"(,"tool_choice":"required")")->required_names, ElementsAre("bash", "edit"));
  EXPECT_THAT(read(tools + R"(,"tool_choice":{"type":"function","function":{"name":"edit"}})")->required_names, ElementsAre("edit"));
  EXPECT_EQ(read(R"("tools":[])")->tools, nullptr);
  EXPECT_TRUE(read(R"("tool_choice":"none")").ok());

  EXPECT_THAT(refusal(R"("tool_choice":"required")"), StartsWith("tool_choice: "));
  EXPECT_THAT(refusal(tools + R"(,"tool_choice":"sometimes")"), StartsWith("tool_choice: "));
  EXPECT_THAT(refusal(tools + R"(,"tool_choice":7)"), StartsWith("tool_choice: "));
  EXPECT_THAT(refusal(tools + R"(,"tool_choice":{"type":"function","function":{"name":"rm"}})"), HasSubstr("\"rm\" is not among the tools"));
  EXPECT_THAT(refusal(tools + R"(,"tool_choice":{"type":"function"})"), StartsWith("tool_choice.function: missing"));
  EXPECT_THAT(refusal(tools + R"(,"tool_choice":{"type":"allowed_tools"})"), StartsWith("tool_choice.type: "));
}

class PreparedChat : public ::testing::Test {
 protected:
  const std::string model_dir = std::string(ESPALIER_SOURCE_DIR) + "/models/espalier-nano";
  const std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::load(model_dir).value();
  const std::shared_ptr<const ChatTemplate> chat_template = ChatTemplate::load(model_dir).value();
  const std::string tools = R"("tools":)" + std::string(kTools);

  std::string opener(const ChatRequest& chat) const { return tokenizer->decode(chat.request.forced_ids); }
};

TEST_F(PreparedChat, RendersAPromptWithBranchPoints) {
  ChatRequest chat = read(tools).value();
  const ReplyParserOptions parser = prepare(chat, *chat_template, *tokenizer).value();
  EXPECT_THAT(chat.request.prompt.text, HasSubstr("hi"));
  EXPECT_THAT(chat.request.branch_points, ::testing::Not(IsEmpty()));
  EXPECT_EQ(parser.format, ToolCallFormat::kXmlFunction);
  EXPECT_FALSE(parser.starts_in_reasoning);
  EXPECT_THAT(chat.request.forced_ids, IsEmpty());
}

// E1: the parser starts where the prompt ended.
TEST_F(PreparedChat, TheParserStartsInsideAnOpenThinkBlock) {
  ChatRequest chat = read(R"("chat_template_kwargs":{"enable_thinking":true})").value();
  EXPECT_TRUE(prepare(chat, *chat_template, *tokenizer)->starts_in_reasoning);
}

TEST_F(PreparedChat, ANamedToolOpensTheReply) {
  ChatRequest chat = read(tools + R"(,"tool_choice":{"type":"function","function":{"name":"edit"}})").value();
  ASSERT_TRUE(prepare(chat, *chat_template, *tokenizer).ok());
  EXPECT_EQ(opener(chat), "<tool_call>\n<function=edit>\n");
  EXPECT_EQ(chat.request.forced_ids.front(), tokenizer->token_id("<tool_call>").value()) << "the control token, not text that looks like it";
  EXPECT_EQ(chat.request.constraint, nullptr);
}

TEST_F(PreparedChat, OfSeveralRequiredToolsOneIsChosen) {
  ChatRequest chat = read(tools + R"(,"tool_choice":"required","enable_thinking":true)").value();
  ASSERT_TRUE(prepare(chat, *chat_template, *tokenizer).ok());
  EXPECT_EQ(opener(chat), "\n</think>\n\n<tool_call>\n<function=");
  EXPECT_NE(chat.request.constraint, nullptr);
}

TEST_F(PreparedChat, NoToolMayBeCalledWithChoiceNone) {
  ChatRequest chat = read(tools + R"(,"tool_choice":"none")").value();
  ASSERT_TRUE(prepare(chat, *chat_template, *tokenizer).ok());
  ASSERT_EQ(chat.request.sampling.logit_bias.size(), 1u);
  EXPECT_EQ(chat.request.sampling.logit_bias.front().first, tokenizer->token_id("<tool_call>").value());
}

}  // namespace
}  // namespace espalier
