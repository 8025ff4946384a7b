#include "replay/answer_tokens.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

// On the default model's tokenizer and template, which writes calls in the family's XML form. What the template renders is spelled out in
// the tests; only its tokens are counted by the tokenizer.
class AnswerTokensTest : public ::testing::Test {
 protected:
  int64_t tokens(std::string_view text) const { return static_cast<int64_t>(tokenizer_->encode(text).size()); }
  // What a message adds to one without content.
  int64_t added(std::string_view rendered) const {
    const std::string head = "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n<think>\n";
    return tokens(head + std::string(rendered) + "<|im_end|>\n") - tokens(head + "\n</think>\n\n<|im_end|>\n");
  }

  static AnswerCall bash(std::string arguments) { return {.index = 0, .id = "call_0", .name = "bash", .arguments = std::move(arguments)}; }

  const std::string model_ = ESPALIER_SOURCE_DIR "/models/espalier-nano";
  const std::shared_ptr<const Tokenizer> tokenizer_ = Tokenizer::load(model_).value();
  const AnswerTokens counter_{tokenizer_, ChatTemplate::load(model_).value()};
};

TEST_F(AnswerTokensTest, PlainContentIsItsOwnTokens) {
  EXPECT_EQ(counter_.count({.content = "The cause is in parse.py."}), tokens("The cause is in parse.py."));
  EXPECT_EQ(counter_.count({.content = "  \n"}), tokens("  \n"));  // no template trims it
  EXPECT_EQ(counter_.count({}), 0);
}

TEST_F(AnswerTokensTest, ACallCountsInTheFormOfTheTemplate) {
  const std::string call = "<tool_call>\n<function=bash>\n<parameter=command>\nls -l\n</parameter>\n</function>\n</tool_call>";
  EXPECT_EQ(counter_.count({.calls = {bash(R"({"command": "ls -l"})")}}), added("\n</think>\n\n" + call));
  EXPECT_EQ(counter_.count({.content = "Look:", .calls = {bash(R"({"command": "ls -l"})")}}), added("\n</think>\n\nLook:\n\n" + call));
  EXPECT_GT(counter_.count({.calls = {bash(R"({"command": "ls -l"})")}}), tokens("ls -l"));
}

TEST_F(AnswerTokensTest, TwoCallsCountBoth) {
  const std::string one = "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>";
  AnswerCall second = bash(R"({"command":"ls"})");
  second.index = 1;
  EXPECT_EQ(counter_.count({.calls = {bash(R"({"command":"ls"})"), second}}), added("\n</think>\n\n" + one + "\n" + one));
}

TEST_F(AnswerTokensTest, ReasoningCountsWithinItsFrame) {
  EXPECT_EQ(counter_.count({.content = "Yes.", .reasoning = "Is it?"}), added("Is it?\n</think>\n\nYes."));
}

TEST_F(AnswerTokensTest, AnUnreadableCallCountsAsTheHarnessWritesIt) {
  const std::string cut = R"({"command": "l)";
  EXPECT_EQ(counter_.count({.calls = {bash(cut)}}),
            tokens(R"([{"type":"function","function":{"arguments":"{\"command\": \"l","name":"bash"},"id":"call_0"}])"));
  EXPECT_EQ(counter_.count({.content = "A", .reasoning = "B", .calls = {bash(cut)}}),
            tokens("A\nB\n" R"([{"type":"function","function":{"arguments":"{\"command\": \"l","name":"bash"},"id":"call_0"}])"));
  EXPECT_EQ(counter_.count({.calls = {bash("[1]")}}), tokens(R"([{"type":"function","function":{"arguments":"[1]","name":"bash"},"id":"call_0"}])"));
  EXPECT_EQ(counter_.count({.calls = {bash("")}}), tokens(R"([{"type":"function","function":{"arguments":"","name":"bash"},"id":"call_0"}])"));
}

// An answer that begins with a call: its name was in the first chunk, which TPOT leaves out.
TEST_F(AnswerTokensTest, ACallWithoutItsNameCountsAsJson) {
  EXPECT_EQ(counter_.count({.calls = {{.index = 0, .arguments = R"({"command": "ls"})"}}}),
            tokens(R"([{"type":"function","function":{"arguments":"{\"command\": \"ls\"}"}}])"));
}

TEST_F(AnswerTokensTest, APromptIsCountedWithTheTemplatesOwnThinking) {
  const Workload workload = parse_workload(R"({"conversation_id":"c","turn":1,"role":"user","content":"hello","system":"be brief"})", "w").value();
  const Conversation& conversation = workload.conversations[0];
  EXPECT_EQ(counter_.count_prompt(conversation, conversation.turns[0]).value(),
            tokens("<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n<think>\n"));
}

}  // namespace
}  // namespace espalier
