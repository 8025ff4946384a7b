#include "server/chat_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "chat/tool_schemas.h"

namespace espalier {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

std::shared_ptr<const Tokenizer> nano_tokenizer() {
  static const auto tokenizer = Tokenizer::load(std::string(ESPALIER_SOURCE_DIR) + "/models/espalier-nano").value();
  return tokenizer;
}

std::shared_ptr<const ToolSchemas> bash_tool() {
  return std::make_shared<const ToolSchemas>(
      parse_json(R"([{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}}}}}])", "t")
          .value());
}

struct Setup {
  bool stream = false, include_usage = false, parallel = true, thinking = false, tools = true;
  int32_t num_choices = 1;
};

ChatReply make(const Setup& setup) {
  return ChatReply({.head = {.id = "chatcmpl-1", .model = "m", .created = 7},
                    .form = {.stream = setup.stream, .include_usage = setup.include_usage},
                    .parser = {.format = ToolCallFormat::kXmlFunction, .tools = setup.tools ? bash_tool() : nullptr, .starts_in_reasoning = setup.thinking},
                    .num_choices = setup.num_choices,
                    .parallel_tool_calls = setup.parallel},
                   nano_tokenizer());
}

TokenEvent text_event(std::string text, int32_t choice = 0) { return {.choice = choice, .token = 1, .text = std::move(text), .top = {}, .finish = {}}; }
TokenEvent last_event(FinishReason reason, int32_t choice = 0) { return {.choice = choice, .token = -1, .text = "", .top = {}, .finish = reason}; }

// The documents of a stream, and what must hold of its bytes.
std::vector<Json> documents(std::string_view stream) {
  std::vector<Json> result;
  while (!stream.empty()) {
    const size_t end = stream.find("\n\n");
    EXPECT_NE(end, std::string_view::npos) << "a frame without its end";
    const std::string_view frame = stream.substr(0, end);
    stream.remove_prefix(end + 2);
    EXPECT_TRUE(frame.starts_with("data: "));
    EXPECT_EQ(frame.find('\n'), std::string_view::npos) << "a frame is one line";
    if (frame == "data: [DONE]") {
      EXPECT_TRUE(stream.empty());
      break;
    }
    result.push_back(parse_json(frame.substr(6), "frame").value());
  }
  return result;
}

// What a client makes of a stream: deltas merged as the OpenAI libraries do.
Json merged(const std::vector<Json>& frames, size_t index = 0) {
  Json message = {{"content", ""}, {"reasoning_content", ""}, {"tool_calls", Json::array()}, {"finish_reason", nullptr}};
  for (const Json& frame : frames) {
    for (const Json& choice : frame["choices"]) {
      if (choice["index"] != index) continue;
      const Json& delta = choice["delta"];
      for (const char* key : {"content", "reasoning_content"}) {
        if (delta.contains(key)) message[key] = message[key].get<std::string>() + delta[key].get<std::string>();
      }
      for (const Json& call : delta.value("tool_calls", Json::array())) {
        const size_t at = call["index"].get<size_t>();
        while (message["tool_calls"].size() <= at) message["tool_calls"].push_back({{"id", ""}, {"type", "function"}, {"function", {{"name", ""}, {"arguments", ""}}}});
        Json& target = message["tool_calls"][at];
        if (call.contains("id")) target["id"] = call["id"];
        if (call["function"].contains("name")) target["function"]["name"] = call["function"]["name"];
        target["function"]["arguments"] = target["function"]["arguments"].get<std::string>() + call["function"]["arguments"].get<std::string>();
      }
      if (!choice["finish_reason"].is_null()) message["finish_reason"] = choice["finish_reason"];
    }
  }
  return message;
}

Json whole_message(const std::string& text, Setup setup, FinishReason reason = FinishReason::kStop) {
  setup.stream = false;
  ChatReply reply = make(setup);
  EXPECT_EQ(reply.on_event(0, text_event(text)), "");
  EXPECT_EQ(reply.on_event(0, last_event(reason)), "");
  EXPECT_TRUE(reply.satisfied());
  return parse_json(reply.finish({}), "body").value()["choices"][0];
}

constexpr std::string_view kTwoCalls =
    "Look 🙂 first.\n<tool_call>\n<function=bash>\n<parameter=command>\necho \"ü\" </param\n</parameter>\n<parameter=timeout>\n5\n</parameter>\n</function>\n</tool_call>"
    "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>";

TEST(ChatReply, AWholeAnswerHasContentAndCalls) {
  const Json choice = whole_message(std::string(kTwoCalls), {});
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_THAT(choice["message"]["content"].get<std::string>(), HasSubstr("Look 🙂 first."));
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 2u);
  const Json& first = choice["message"]["tool_calls"][0];
  EXPECT_EQ(parse_json(first["function"]["arguments"].get<std::string>(), "a").value(), (Json{{"command", "echo \"ü\" </param"}, {"timeout", 5}}));
  EXPECT_NE(first["id"], choice["message"]["tool_calls"][1]["id"]);
  EXPECT_THAT(first["id"].get<std::string>(), ::testing::MatchesRegex("call_[0-9a-f]{24}"));
}

// D9, D10, D16, D17, C7: whatever arrives together, the stream adds up to the whole answer.
TEST(ChatReply, StreamedAndWholeAnswersAreEqualForEveryBurst) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const std::string texts[] = {std::string(kTwoCalls), "plain \"text\" 日本語", "", "<tool_call>\n<function=rm>\n</function>\n</tool_call>", "<function=bash>\n</function>"};
  for (const std::string& text : texts) {
    const Json whole = whole_message(text, {});
    for (size_t burst = 1; burst <= 40; ++burst) {
      ChatReply reply = make({.stream = true});
      std::string stream;
      for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.size(), at + (burst <= 30 ? burst : 1 + random() % 60));
        while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;  // events hold whole characters
        stream += reply.on_event(0, text_event(text.substr(at, end - at)));
        at = end;
      }
      stream += reply.on_event(0, last_event(FinishReason::kStop));
      stream += reply.finish({});
      const Json message = merged(documents(stream));
      EXPECT_EQ(message["finish_reason"], whole["finish_reason"]) << "burst " << burst;
      EXPECT_EQ(message["tool_calls"], whole["message"].value("tool_calls", Json::array())) << "burst " << burst;
      const Json& content = whole["message"]["content"];
      EXPECT_EQ(message["content"], content.is_null() ? "" : content.get<std::string>()) << "burst " << burst;
    }
  }
}

TEST(ChatReply, TheFirstFrameCarriesTheRoleAndText) {
  ChatReply reply = make({.stream = true});
  const std::vector<Json> first = documents(reply.on_event(0, text_event("Hi")));
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0]["choices"][0]["delta"], (Json{{"role", "assistant"}, {"content", "Hi"}}));
  EXPECT_EQ(first[0]["object"], "chat.completion.chunk");
  EXPECT_TRUE(first[0]["choices"][0]["finish_reason"].is_null());
  EXPECT_FALSE(first[0].contains("usage"));
  const std::vector<Json> second = documents(reply.on_event(0, text_event(" there")));
  EXPECT_EQ(second[0]["choices"][0]["delta"], (Json{{"content", " there"}}));
}

TEST(ChatReply, ACallIsNamedBeforeItsArguments) {
  ChatReply reply = make({.stream = true});
  const std::vector<Json> frames = documents(reply.on_event(0, text_event("<tool_call>\n<function=bash>\n")));
  ASSERT_EQ(frames.size(), 1u);
  const Json& call = frames[0]["choices"][0]["delta"]["tool_calls"][0];
  EXPECT_EQ(call["index"], 0);
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"], (Json{{"name", "bash"}, {"arguments", ""}}));
}

TEST(ChatReply, TheLastChunkHasTheNumbersAndUsageWhereAsked) {
  ChatReply reply = make({.stream = true, .include_usage = true});
  std::string stream = reply.on_event(0, text_event("Hi"));
  stream += reply.on_event(0, last_event(FinishReason::kLength));
  RequestStats stats;
  stats.prompt_tokens = 100;
  stats.hot_tokens = 90;
  stats.output_tokens = 1;
  stats.cold_reason = "diverged from known prompts at token 90";
  stream += reply.finish(stats);
  EXPECT_THAT(stream, EndsWith("data: [DONE]\n\n"));
  const std::vector<Json> frames = documents(stream);
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_TRUE(frames[0]["usage"].is_null());
  EXPECT_EQ(frames[1]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(frames[1]["espalier"]["cached_tokens"], 90);
  EXPECT_EQ(frames[1]["espalier"]["cold_reason"], stats.cold_reason);
  EXPECT_EQ(frames[2]["choices"], Json::array());
  EXPECT_EQ(frames[2]["usage"]["prompt_tokens_details"]["cached_tokens"], 90);
  EXPECT_EQ(frames[2]["usage"]["total_tokens"], 101);
}

TEST(ChatReply, AnAnswerWithoutTextStillEnds) {
  ChatReply reply = make({.stream = true});
  std::string stream = reply.on_event(0, last_event(FinishReason::kStop));
  stream += reply.finish({});
  const std::vector<Json> frames = documents(stream);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0]["choices"][0]["delta"], (Json{{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(frames[0]["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(reply.empty());
}

TEST(ChatReply, ReasoningIsApartFromContent) {
  const Json message = whole_message("I think.\n</think>\n\nAnswer", {.thinking = true})["message"];
  EXPECT_THAT(message["reasoning_content"].get<std::string>(), HasSubstr("I think."));
  EXPECT_THAT(message["content"].get<std::string>(), EndsWith("Answer"));
  EXPECT_EQ(message["content"].get<std::string>().find("think"), std::string::npos);
}

TEST(ChatReply, WithoutToolsNothingIsACall) {
  const Json choice = whole_message(std::string(kTwoCalls), {.tools = false});
  EXPECT_EQ(choice["message"]["content"], std::string(kTwoCalls));
  EXPECT_EQ(choice["finish_reason"], "stop");
}

TEST(ChatReply, WithoutParallelCallsAChoiceEndsWithItsFirst) {
  ChatReply reply = make({.stream = true, .parallel = false});
  std::string stream = reply.on_event(0, text_event(std::string(kTwoCalls)));
  EXPECT_TRUE(reply.satisfied()) << "what still runs can be cancelled";
  stream += reply.on_event(0, text_event("more"));
  stream += reply.on_event(0, last_event(FinishReason::kCancelled));
  stream += reply.finish({});
  const Json message = merged(documents(stream));
  EXPECT_EQ(message["tool_calls"].size(), 1u);
  EXPECT_EQ(message["finish_reason"], "tool_calls");
  EXPECT_THAT(message["content"].get<std::string>(), ::testing::Not(HasSubstr("more")));
}

TEST(ChatReply, ChoicesAreToldApart) {
  ChatReply reply = make({.stream = true, .num_choices = 2});
  std::string stream = reply.on_event(0, text_event("one", 0)) + reply.on_event(0, text_event("two", 1));
  stream += reply.on_event(0, last_event(FinishReason::kStop, 1));
  EXPECT_FALSE(reply.satisfied());
  stream += reply.on_event(0, last_event(FinishReason::kLength, 0));
  EXPECT_TRUE(reply.satisfied());
  stream += reply.finish({});
  const std::vector<Json> frames = documents(stream);
  EXPECT_EQ(merged(frames, 0)["content"], "one");
  EXPECT_EQ(merged(frames, 0)["finish_reason"], "length");
  EXPECT_EQ(merged(frames, 1)["content"], "two");
  EXPECT_EQ(merged(frames, 1)["finish_reason"], "stop");
}

// D19: a call that the token limit cuts.
TEST(ChatReply, ACallCutByTheLimitIsFlagged) {
  ChatReply reply = make({});
  reply.on_event(0, text_event("<tool_call>\n<function=bash>\n<parameter=timeout>\n5\n</parameter>\n<parameter=command>\nsleep"));
  reply.on_event(0, last_event(FinishReason::kLength));
  const Json body = parse_json(reply.finish({}), "body").value();
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(body["espalier"]["incomplete_tool_call"], true);
  const std::string arguments = body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"];
  EXPECT_TRUE(parse_json(arguments, "arguments").value().is_object());
}

TEST(ChatReply, LogprobsComeWithTheTextTheyBelongTo) {
  const auto tokenizer = nano_tokenizer();
  ChatReply reply({.head = {}, .form = {.stream = true, .logprobs = true}, .parser = {}, .num_choices = 1}, tokenizer);
  TokenEvent held = text_event("");
  held.token = tokenizer->token_id("a").value();
  held.logprob = -0.5f;
  EXPECT_EQ(reply.on_event(0, held), "");
  TokenEvent shown = text_event("ab");
  shown.token = tokenizer->token_id("b").value();
  shown.top = {{shown.token, -0.25f}};
  shown.tokens_shown = 2;
  std::string stream = reply.on_event(0, shown);
  TokenEvent stop = text_event("");  // belongs to a stop string
  stop.tokens_shown = 2;
  stream += reply.on_event(0, stop);
  TokenEvent last = last_event(FinishReason::kStop);
  last.tokens_shown = 2;
  stream += reply.on_event(0, last);
  stream += reply.finish({});
  const std::vector<Json> frames = documents(stream);
  const Json& content = frames[0]["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 2u);
  EXPECT_EQ(content[0]["token"], "a");
  EXPECT_EQ(content[0]["logprob"], -0.5);
  EXPECT_EQ(content[0]["bytes"], Json::array({97}));
  EXPECT_EQ(content[1]["top_logprobs"][0]["token"], "b");
  EXPECT_EQ(frames[1]["choices"][0]["logprobs"]["content"], Json::array());
}

}  // namespace
}  // namespace espalier
