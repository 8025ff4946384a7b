#include "replay/replayer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json bash_calls(std::string_view command) {
  return Json::array({Json{{"type", "function"}, {"function", Json{{"name", "bash"}, {"arguments", dump_json(Json{{"command", command}})}}}}});
}

// Conversations a, b, ... of `turns` client turns each; every recorded answer runs `ls`.
Workload small_workload(int conversations, int turns) {
  std::string text;
  for (int c = 0; c < conversations; ++c) {
    const std::string id(1, static_cast<char>('a' + c));
    for (int t = 0; t < turns; ++t) {
      Json row{{"conversation_id", id}, {"turn", 2 * t + 1}};
      if (t == 0) {
        row.update(Json{{"role", "user"}, {"content", "q"}});
      } else {
        row.update(Json{{"role", "tool"}, {"tool_results", Json::array({Json{{"tool_call_id", "x"}, {"content", "r"}}})}});
      }
      text += dump_json(row) + "\n";
      text += dump_json(Json{{"conversation_id", id}, {"turn", 2 * t + 2}, {"role", "assistant"}, {"tool_calls", bash_calls("ls")}}) + "\n";
    }
  }
  return parse_workload(text, "test").value();
}

class FakeExecutor : public TurnExecutor {
 public:
  Result<TurnOutcome> run(const TurnRequest& request) override {
    asked.push_back(format("{}{}", request.conversation.id, request.turn.number));
    max_tokens.push_back(request.max_tokens);
    if (asked.back() == fail_at) return Error{failure, "broken"};
    return outcome;
  }
  std::string token_counts() const override { return "made up"; }

  TurnOutcome outcome{.prompt_tokens = 100,
                      .hot_tokens = 90,
                      .output_tokens = 11,
                      .tokens_after_first = 10,
                      .ttft_ms = 20.0,
                      .latency_ms = 70.0,
                      .content = "answer",
                      .tool_calls = bash_calls("ls"),
                      .finish_reason = "stop",
                      .cold_reason = "diverged at token 90"};
  std::string fail_at;
  ErrorCode failure = ErrorCode::kInternal;
  std::vector<std::string> asked;
  std::vector<int64_t> max_tokens;
};

TEST(Replay, PlaysEveryTurnInFileOrder) {
  FakeExecutor executor;
  const ReplayReport report = replay(small_workload(2, 3), {}, executor).value();
  EXPECT_THAT(executor.asked, ElementsAre("a1", "a3", "a5", "b1", "b3", "b5"));
  EXPECT_THAT(executor.max_tokens, ::testing::Each(1024));
  EXPECT_EQ(report.turns_ok, 6);
  EXPECT_EQ(report.turns_failed, 0);
}

TEST(Replay, AddsUpWhatTheTurnsMeasured) {
  FakeExecutor executor;
  const ReplayReport report = replay(small_workload(2, 3), {}, executor).value();
  EXPECT_EQ(report.prompt_tokens, 600);
  EXPECT_EQ(report.hot_tokens, 540);
  EXPECT_DOUBLE_EQ(report.hot_share(), 0.9);
  EXPECT_EQ(report.output_tokens, 66);
  EXPECT_EQ(report.ttft_ms.count, 6u);
  EXPECT_EQ(report.ttft_ms.median, 20.0);
  EXPECT_EQ(report.tpot_ms.median, 5.0);  // (70 - 20) / 10
  EXPECT_EQ(report.latency_ms.total, 420.0);
  EXPECT_EQ(report.iou.expected, 6);
  EXPECT_EQ(report.iou.score, 1.0);
  EXPECT_THAT(report.finish_reasons, ElementsAre(std::pair<const std::string, int64_t>("stop", 6)));
  EXPECT_THAT(report.cold_reasons, ElementsAre(std::pair<const std::string, int64_t>("diverged at token #", 6)));
  EXPECT_THAT(report.failures, IsEmpty());
  EXPECT_GE(report.wall_s, 0.0);
}

TEST(Replay, AnswersWithoutTextOrOfOneChunkLeaveTheirSeriesAlone) {
  FakeExecutor executor;
  executor.outcome.tokens_after_first = 0;
  ReplayReport report = replay(small_workload(1, 1), {}, executor).value();
  EXPECT_EQ(report.ttft_ms.count, 1u);
  EXPECT_EQ(report.tpot_ms.count, 0u);
  executor.outcome = {.latency_ms = 3.0};
  report = replay(small_workload(1, 1), {}, executor).value();
  EXPECT_EQ(report.turns_ok, 1);
  EXPECT_EQ(report.ttft_ms.count, 0u);
  EXPECT_EQ(report.latency_ms.count, 1u);
  EXPECT_EQ(report.iou.observed, 1);
  EXPECT_EQ(report.iou.score, 0.0);
  EXPECT_THAT(report.finish_reasons, IsEmpty());
}

TEST(Replay, AFailedTurnEndsItsConversationOnly) {
  FakeExecutor executor;
  executor.fail_at = "a3";
  const ReplayReport report = replay(small_workload(2, 3), {}, executor).value();
  EXPECT_THAT(executor.asked, ElementsAre("a1", "a3", "b1", "b3", "b5"));
  EXPECT_EQ(report.turns_ok, 4);
  EXPECT_EQ(report.turns_failed, 2);
  EXPECT_EQ(report.latency_ms.count, 6u);  // the harness completes failed and skipped turns too
  EXPECT_EQ(report.ttft_ms.count, 4u);
  EXPECT_EQ(report.iou.expected, 6);
  EXPECT_EQ(report.iou.missing, 2);
  EXPECT_EQ(report.iou.score, 0.6667);
  EXPECT_THAT(report.failures, ElementsAre("a turn 3: broken"));
}

TEST(Replay, CancellingEndsIt) {
  FakeExecutor executor;
  executor.fail_at = "a3";
  executor.failure = ErrorCode::kCancelled;
  const auto report = replay(small_workload(2, 3), {}, executor);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(executor.asked, ElementsAre("a1", "a3"));
}

TEST(Replay, OptionsLimitConversationsTurnsAndTokens) {
  FakeExecutor executor;
  const auto report = replay(small_workload(3, 3), {.num_conversations = 2, .num_turns = 1, .max_tokens = 7}, executor);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(executor.asked, ElementsAre("a1", "b1"));
  EXPECT_THAT(executor.max_tokens, ElementsAre(7, 7));
  FakeExecutor all;
  ASSERT_TRUE(replay(small_workload(1, 2), {.num_conversations = 100, .num_turns = 100}, all).ok());
  EXPECT_THAT(all.asked, ElementsAre("a1", "a3"));
}

TEST(Replay, RefusesOptionsThatMeanNothing) {
  FakeExecutor executor;
  for (const ReplayOptions& options : {ReplayOptions{.num_conversations = -1}, ReplayOptions{.num_turns = -2}, ReplayOptions{.max_tokens = 0}}) {
    const auto report = replay(small_workload(1, 1), options, executor);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(report.error().message, HasSubstr("must be at least"));
  }
  EXPECT_THAT(executor.asked, IsEmpty());
}

TEST(Replay, ReportsProgressAfterEachTurn) {
  FakeExecutor executor;
  executor.fail_at = "a3";
  std::vector<std::string> seen;
  const auto report = replay(small_workload(2, 3), {}, executor, [&](const ReplayProgress& progress) {
    const std::string line = progress_line(progress);
    seen.push_back(line.substr(0, line.rfind(',')));  // without the time
    EXPECT_EQ(progress.outcome.ok(), progress.request.conversation.id != "a" || progress.request.turn.number != 3);
  });
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(seen, ElementsAre("turn 1/6 a, 90.0 % hot, 0 failed", "turn 3/6 a, 90.0 % hot, 2 failed", "turn 4/6 b, 90.0 % hot, 2 failed",
                                "turn 5/6 b, 90.0 % hot, 2 failed", "turn 6/6 b, 90.0 % hot, 2 failed"));
}

TEST(Replay, TheReportSaysWhoCountedTheTokens) {
  FakeExecutor executor;
  EXPECT_EQ(replay(small_workload(1, 1), {}, executor).value().token_counts, "made up");
}

TEST(ReplyRecord, HoldsWhatAnyExecutorKnows) {
  const Workload workload = small_workload(1, 1);
  const TurnRequest request{.conversation = workload.conversations[0], .turn = workload.conversations[0].turns[0]};
  TurnOutcome outcome{.content = "answer", .tool_calls = bash_calls("ls"), .finish_reason = "tool_calls"};
  outcome.tool_calls[0]["id"] = "call_17";  // which every server makes up in its own way
  EXPECT_EQ(dump_json(reply_record(request, outcome)), R"({"conversation":"a","turn":1,"content":"answer",)"
                                                       R"("tool_calls":[{"name":"bash","arguments":"{\"command\":\"ls\"}"}],"finish_reason":"tool_calls"})");
  EXPECT_EQ(dump_json(reply_record(request, Error{ErrorCode::kIo, "no"})),
            R"({"conversation":"a","turn":1,"content":"","tool_calls":[],"finish_reason":null})");
}

TEST(Replay, KeepsTheFirstFewFailures) {
  class Broken : public TurnExecutor {
    Result<TurnOutcome> run(const TurnRequest&) override { return Error{ErrorCode::kIo, "no"}; }
    std::string token_counts() const override { return "none"; }
  } executor;
  const ReplayReport report = replay(small_workload(9, 1), {}, executor).value();
  EXPECT_EQ(report.turns_failed, 9);
  EXPECT_EQ(report.failures.size(), 5u);
}

}  // namespace
}  // namespace espalier
