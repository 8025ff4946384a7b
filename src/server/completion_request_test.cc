#include "server/completion_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

Result<CompletionRequest> read(std::string_view body, const RequestLimits& limits = {}) {
  return read_completion_request(parse_json(body, "test").value(), limits, {});
}
std::string refusal(std::string_view body, const RequestLimits& limits = {}) {
  const Result<CompletionRequest> completion = read(body, limits);
  EXPECT_FALSE(completion.ok()) << body;
  return completion.ok() ? "" : completion.error().message;
}

TEST(CompletionRequest, PromptsAreTextOrIdsOneOrMany) {
  EXPECT_EQ(read(R"({"prompt":"a"})")->requests.front().prompt.text, "a");
  EXPECT_THAT(read(R"({"prompt":[1,2]})")->requests.front().prompt_ids, ElementsAre(1, 2));
  const CompletionRequest several = read(R"({"prompt":["a","b"],"n":2,"logprobs":0})").value();
  ASSERT_EQ(several.requests.size(), 2u);
  EXPECT_EQ(several.requests[1].prompt.text, "b");
  EXPECT_EQ(several.requests[1].num_choices, 2);
  EXPECT_TRUE(several.logprobs);
  EXPECT_THAT(read(R"({"prompt":[[1],[2,3]]})")->requests[1].prompt_ids, ElementsAre(2, 3));
}

TEST(CompletionRequest, TextIsTakenAsTheTemplateWouldWriteIt) {
  const CompletionRequest completion = read(R"({"prompt":"<|im_start|>"})").value();
  EXPECT_EQ(completion.requests.front().prompt.origin_at(0), Origin::kTemplate);
}

TEST(CompletionRequest, WithoutALimitTheReplyHas16Tokens) {
  EXPECT_EQ(read(R"({"prompt":"a"})")->requests.front().max_new_tokens, 16);
  EXPECT_EQ(read(R"({"prompt":"a","max_tokens":-1})")->requests.front().max_new_tokens, -1);
}

TEST(CompletionRequest, OddPromptsAreRefusedByName) {
  EXPECT_THAT(refusal(R"({})"), StartsWith("prompt: missing"));
  EXPECT_THAT(refusal(R"({"prompt":""})"), StartsWith("prompt: is empty"));
  EXPECT_THAT(refusal(R"({"prompt":[]})"), StartsWith("prompt: is empty"));
  EXPECT_THAT(refusal(R"({"prompt":["a",""]})"), StartsWith("prompt[1]: is empty"));
  EXPECT_THAT(refusal(R"({"prompt":[1,"a"]})"), StartsWith("prompt[1]: expected a token id"));
  EXPECT_THAT(refusal(R"({"prompt":["a",1]})"), StartsWith("prompt[1]: expected a string"));
  EXPECT_THAT(refusal(R"({"prompt":[-1]})"), StartsWith("prompt[0]: expected a token id"));
  EXPECT_THAT(refusal(R"({"prompt":[18446744073709551615]})"), StartsWith("prompt[0]: expected a token id"));
  EXPECT_THAT(refusal(R"({"prompt":7})"), StartsWith("prompt: expected"));
  RequestLimits limits;
  limits.max_prompts = 1;
  EXPECT_THAT(refusal(R"({"prompt":["a","b"]})", limits), StartsWith("prompt: expected at most 1 prompts"));
}

TEST(CompletionRequest, WhatIsNotSupportedIsRefusedByName) {
  EXPECT_THAT(refusal(R"({"prompt":"a","suffix":"b"})"), StartsWith("suffix: "));
  EXPECT_THAT(refusal(R"({"prompt":"a","echo":true})"), StartsWith("echo: "));
  EXPECT_THAT(refusal(R"({"prompt":"a","logprobs":99})"), StartsWith("logprobs: "));
  EXPECT_TRUE(read(R"({"prompt":"a","echo":false,"best_of":1,"suffix":null})").ok());
}

}  // namespace
}  // namespace espalier
