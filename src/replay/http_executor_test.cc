#include "replay/http_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "replay/request_body.h"
#include "tests/support/scripted_server.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using std::chrono::milliseconds;

constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kEnd = "0\r\n\r\n";

std::string http_chunk(std::string_view bytes) { return format("{:x}\r\n{}\r\n", bytes.size(), bytes); }

std::string event(std::string_view delta, std::string_view finish_reason = "null", std::string_view more = "") {
  return format("data: {{\"id\":\"c1\",\"choices\":[{{\"index\":0,\"delta\":{},\"finish_reason\":{}}}]{}}}\n\n", delta, finish_reason, more);
}

// The worked example of a stream that the harness likes.
const std::string kContent = event(R"({"role":"assistant","content":"I will"})");
const std::string kCallName = event(R"({"tool_calls":[{"index":0,"id":"call_0","type":"function","function":{"name":"bash","arguments":""}}]})");
const std::string kCallArguments = event(R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"command\": \"ls\"}"}}]})");
const std::string kFinish = event("{}", R"("tool_calls")");
const std::string kDone = "data: [DONE]\n\n";

std::string whole_stream(std::string_view events) { return std::string(kHead) + http_chunk(events) + std::string(kEnd); }

ScriptedServer::Script answering(std::string bytes) {
  return [bytes = std::move(bytes)](ScriptedPeer& peer) {
    peer.read_request();
    peer.send(bytes);
  };
}

const Workload& workload() {
  static const Workload two_turns = parse_workload(
      R"({"conversation_id":"django__1","turn":1,"role":"user","content":"h\u00e4?","system":"s","tools":[{"type":"function","function":{}}]})"
      "\n"
      R"({"conversation_id":"django__1","turn":2,"role":"assistant","tool_calls":[{"id":"x","type":"function",)"
      R"("function":{"name":"x","arguments":{}}}]})"
      "\n"
      R"({"conversation_id":"django__1","turn":3,"role":"tool","tool_results":[{"tool_call_id":"x","content":"r"}]})",
      "w").value();
  return two_turns;
}

TurnRequest turn(size_t index = 0) {
  const Conversation& conversation = workload().conversations[0];
  return {.conversation = conversation, .turn = conversation.turns[index], .max_tokens = 1024};
}

HttpExecutor executor_of(const ScriptedServer& server, HttpExecutorOptions options = {}, const HttpClientOptions& client = {}) {
  return HttpExecutor(HttpClient::create(server.url(), client).value(), std::move(options));
}

// The error of one turn that gets these bytes.
std::string failure_of(std::string answer) {
  const ScriptedServer server({answering(std::move(answer))});
  const auto outcome = executor_of(server).run(turn());
  EXPECT_FALSE(outcome.ok());
  if (outcome.ok()) return {};
  EXPECT_NE(outcome.error().code, ErrorCode::kCancelled);  // which would end the replay
  return outcome.error().message;
}

TEST(HttpExecutor, SendsTheRequestOfTheHarness) {
  std::vector<std::string> requests;
  const auto answer = [&](ScriptedPeer& peer) {
    for (int i = 0; i < 2; ++i) {
      requests.push_back(peer.read_request());
      peer.send(whole_stream(kContent + kFinish + kDone));
    }
  };
  int port = 0;
  {
    const ScriptedServer server({answer, answer});
    port = server.port();
    HttpExecutor executor = executor_of(server);
    ASSERT_TRUE(executor.run(turn(0)).ok());
    ASSERT_TRUE(executor.run(turn(1)).ok());
    EXPECT_EQ(server.accepted(), 1);
  }
  ASSERT_EQ(requests.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const std::string body = request_body(turn(i).conversation, turn(i).turn);
    EXPECT_EQ(requests[i], format("POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n"
                                  "Accept: text/event-stream\r\nX-Session-ID: django__1\r\nContent-Length: {}\r\n\r\n{}",
                                  port, body.size(), body));
  }
}

TEST(HttpExecutor, AKeyBecomesTheFirstHeader) {
  std::string request;
  {
    const ScriptedServer server({[&](ScriptedPeer& peer) {
      request = peer.read_request();
      peer.send(whole_stream(kContent + kFinish));
    }});
    ASSERT_TRUE(executor_of(server, {.api_key = "secret"}).run(turn()).ok());
  }
  EXPECT_THAT(request, HasSubstr("\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\n"));
}

TEST(HttpExecutor, TheTokenLimitIsTheReplays) {
  std::string request;
  {
    const ScriptedServer server({[&](ScriptedPeer& peer) {
      request = peer.read_request();
      peer.send(whole_stream(kContent + kFinish));
    }});
    TurnRequest limited = turn();
    limited.max_tokens = 60;
    ASSERT_TRUE(executor_of(server).run(limited).ok());
  }
  EXPECT_THAT(request, HasSubstr(R"("max_completion_tokens":60)"));
}

TEST(HttpExecutor, ReadsContentACallAndTheFinishReason) {
  const ScriptedServer server({answering(whole_stream(kContent + kCallName + kCallArguments + kFinish + kDone))});
  const TurnOutcome outcome = executor_of(server).run(turn()).value();
  EXPECT_EQ(outcome.content, "I will");
  EXPECT_EQ(dump_json(outcome.tool_calls), R"([{"type":"function","function":{"name":"bash","arguments":"{\"command\": \"ls\"}"}}])");
  EXPECT_EQ(outcome.finish_reason, "tool_calls");
  EXPECT_EQ(dump_json(reply_record(turn(), outcome)),
            R"({"conversation":"django__1","turn":1,"content":"I will","tool_calls":[{"name":"bash","arguments":"{\"command\": \"ls\"}"}],)"
            R"("finish_reason":"tool_calls"})");
}

TEST(HttpExecutor, EventsMayBeCutAnywhereAndAnsweredWithALength) {
  const std::string characters = event(R"({"content":"\u00e4"})") + event("{\"content\":\"\xe2\x82\xac\"}");
  const std::string events = ": ping\n\n" + characters + kCallName + kCallArguments + kFinish;
  std::string chunks(kHead);
  for (const char byte : events) chunks += http_chunk(std::string_view(&byte, 1));
  const std::string with_length = format("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n{}", events.size(), events);
  for (const std::string& answer : {chunks + std::string(kEnd), with_length}) {
    const ScriptedServer server({answering(answer)});
    const auto outcome = executor_of(server).run(turn());
    ASSERT_TRUE(outcome.ok()) << outcome.error().message;
    EXPECT_EQ(outcome->content, "\xc3\xa4\xe2\x82\xac");
    EXPECT_EQ(outcome->tool_calls.size(), 1u);
  }
}

TEST(HttpExecutor, TwoCallsStayTwo) {
  const std::string second = event(R"({"tool_calls":[{"index":1,"id":"call_1","type":"function","function":{"name":"other","arguments":"{}"}}]})");
  const ScriptedServer server({answering(whole_stream(kCallName + kCallArguments + second + kFinish))});
  const TurnOutcome outcome = executor_of(server).run(turn()).value();
  ASSERT_EQ(outcome.tool_calls.size(), 2u);
  EXPECT_EQ(outcome.tool_calls[1]["function"]["name"], "other");
  EXPECT_EQ(outcome.content, "");
}

TEST(HttpExecutor, TheFirstChunkStopsTheClockOfTtftAndTheEndThatOfLatency) {
  std::atomic<bool> seen = false;
  const ScriptedServer server({[&](ScriptedPeer& peer) {
    peer.read_request();
    peer.send(std::string(kHead) + http_chunk(event(R"({"role":"assistant"})")));
    std::this_thread::sleep_for(milliseconds(100));
    peer.send(http_chunk(kContent));
    for (int i = 0; i < 2000 && !seen; ++i) std::this_thread::sleep_for(milliseconds(5));
    std::this_thread::sleep_for(milliseconds(50));
    peer.send(http_chunk(kFinish + kDone));
    std::this_thread::sleep_for(milliseconds(50));  // the end is that of the message, not [DONE]
    peer.send(kEnd);
  }});
  const TurnOutcome outcome = executor_of(server, {.on_text = [&](std::string_view) { seen = true; }}).run(turn()).value();
  EXPECT_GE(outcome.ttft_ms.value(), 100.0);
  EXPECT_GE(outcome.latency_ms, outcome.ttft_ms.value() + 100.0);
}

TEST(HttpExecutor, ShowsTheAnswerAsItGrows) {
  std::vector<std::string> shown;
  const ScriptedServer server({answering(whole_stream(kContent + kCallName + kCallArguments + kFinish))});
  ASSERT_TRUE(executor_of(server, {.on_text = [&](std::string_view text) { shown.emplace_back(text); }}).run(turn()).ok());
  EXPECT_THAT(shown, ElementsAre("I will", "\n[bash] ", R"({"command": "ls"})"));
}

TEST(HttpExecutor, TokensAreTheServersWhereNobodyElseCounts) {
  const std::string counts = R"("prompt_tokens":100,"cached_tokens":90,"completion_tokens":7,"cold_reason":"diverged at token 90")";
  const std::string finish = event("{}", R"("stop")", R"(,"espalier":{)" + counts + "}");
  const ScriptedServer server({answering(whole_stream(kContent + finish))});
  HttpExecutor executor = executor_of(server);
  const TurnOutcome outcome = executor.run(turn()).value();
  EXPECT_EQ(outcome.prompt_tokens, 100);
  EXPECT_EQ(outcome.hot_tokens, 90);
  EXPECT_EQ(outcome.output_tokens, 7);
  EXPECT_EQ(outcome.tokens_after_first, 6);
  EXPECT_EQ(outcome.cold_reason, "diverged at token 90");
  EXPECT_EQ(executor.token_counts(), "prompts by the server, answers by the server (TPOT over all tokens but one)");
}

TEST(HttpExecutor, ASilentServerLeavesCountsUnknownAndTheReportSaysSo) {
  const ScriptedServer server({answering(whole_stream(kContent + kFinish))});
  HttpExecutor executor = executor_of(server);
  const TurnOutcome outcome = executor.run(turn()).value();
  EXPECT_EQ(outcome.prompt_tokens, 0);
  EXPECT_EQ(outcome.output_tokens, 0);
  EXPECT_EQ(outcome.tokens_after_first, 0);
  EXPECT_EQ(executor.token_counts(), "prompts of 1 turns unknown, answers of 1 turns unknown");
}

TEST(HttpExecutor, WithATokenizerAnswersAreCountedByTheHarnesssRules) {
  const std::string model = ESPALIER_SOURCE_DIR "/models/espalier-nano";
  const auto tokenizer = Tokenizer::load(model).value();
  const auto tokens = std::make_shared<const AnswerTokens>(tokenizer, ChatTemplate::load(model).value());
  const std::string finish = event("{}", R"("stop")", R"(,"usage":{"prompt_tokens":5000,"completion_tokens":5000})");
  const ScriptedServer server({answering(whole_stream(event(R"({"content":"one two"})") + event(R"({"content":" three"})") + finish)),
                               answering(whole_stream(kContent + kFinish))});
  HttpExecutor executor = executor_of(server, {.tokens = tokens});
  const TurnOutcome counted = executor.run(turn()).value();
  EXPECT_EQ(counted.prompt_tokens, 5000);
  EXPECT_EQ(counted.output_tokens, static_cast<int64_t>(tokenizer->encode("one two three").size()));
  EXPECT_EQ(counted.tokens_after_first, static_cast<int64_t>(tokenizer->encode(" three").size()));
  EXPECT_EQ(executor.token_counts(), "prompts by the server, answers by the harness's rules");
  EXPECT_EQ(executor.run(turn()).value().prompt_tokens, tokens->count_prompt(turn().conversation, turn().turn).value());
  EXPECT_EQ(executor.token_counts(), "prompts of 1 turns by our tokenizer, answers by the harness's rules");
}

TEST(HttpExecutor, AnErrorInTheStreamFailsTheTurnWithTheServersWords) {
  const std::string error = "data: {\"error\":{\"message\":\"the cache is full\"}}\n\n";
  EXPECT_THAT(failure_of(whole_stream(kContent + error + kFinish)), HasSubstr("the cache is full"));
  EXPECT_THAT(failure_of(whole_stream("event: error\n" + error)), HasSubstr("the cache is full"));
}

TEST(HttpExecutor, AnotherStatusFailsTheTurnWithItsWords) {
  const std::string body = R"({"error":{"message":"busy, try again"}})";
  EXPECT_EQ(failure_of(format("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: {}\r\n\r\n{}", body.size(), body)),
            "status 503: busy, try again");
  EXPECT_THAT(failure_of("HTTP/1.1 100 Continue\r\n\r\n"), HasSubstr("status 100"));
  EXPECT_THAT(failure_of("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"), HasSubstr("status 202"));
}

TEST(HttpExecutor, AStreamThatBreaksOffFailsTheTurn) {
  EXPECT_THAT(failure_of(std::string(kHead) + http_chunk(kContent) + http_chunk(kFinish)), HasSubstr("middle of the answer"));  // no last chunk
  EXPECT_THAT(failure_of(std::string(kHead) + "ffff\r\n" + kContent), HasSubstr("middle of the answer"));
  EXPECT_THAT(failure_of(whole_stream(kContent)), HasSubstr("without a finish_reason"));
  EXPECT_THAT(failure_of(whole_stream(kContent + kDone)), HasSubstr("without a finish_reason"));
  EXPECT_THAT(failure_of(whole_stream(kContent + kFinish.substr(0, kFinish.size() - 1))), HasSubstr("in the middle of an event"));
}

TEST(HttpExecutor, AnEmptyAnswerFailsTheTurn) {
  EXPECT_THAT(failure_of(whole_stream(event(R"({"role":"assistant","content":""})") + event("{}", R"("stop")") + kDone)), HasSubstr("empty"));
}

TEST(HttpExecutor, APlainCompletionIsNoStream) {
  const std::string body = R"({"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]})";
  EXPECT_THAT(failure_of(format("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", body.size(), body)),
              HasSubstr("application/json"));
}

TEST(HttpExecutor, AChunkOfAnotherShapeFailsTheTurn) {
  EXPECT_THAT(failure_of(whole_stream(event(R"({"content":["hi"]})") + kFinish)), HasSubstr("content"));
  EXPECT_THAT(failure_of(whole_stream("data: not json\n\n")), HasSubstr("JSON"));
}

TEST(HttpExecutor, AFailedTurnDoesNotHarmTheNext) {
  const ScriptedServer server({answering(whole_stream("data: {\"error\":\"no\"}\n\n" + kContent)), answering(whole_stream(kContent + kFinish))});
  HttpExecutor executor = executor_of(server);
  EXPECT_FALSE(executor.run(turn()).ok());
  EXPECT_EQ(executor.token_counts(), "none");
  EXPECT_EQ(executor.run(turn()).value().content, "I will");
}

TEST(HttpExecutor, AnInterruptionEndsTheReplay) {
  std::atomic<bool> interrupted = false;
  const ScriptedServer server({[&](ScriptedPeer& peer) {
    peer.read_request();
    peer.send(std::string(kHead) + http_chunk(kContent));
    interrupted = true;
    peer.wait_until_closed();
  }});
  HttpExecutor executor = executor_of(server, {}, {.interrupted = &interrupted});
  const auto report = replay(workload(), {}, executor);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
}

TEST(HttpExecutor, AServerThatIsGoneFailsEveryConversation) {
  const ScriptedServer server({answering(whole_stream(kContent + kFinish))});
  HttpExecutor executor = executor_of(server);
  const ReplayReport report = replay(workload(), {}, executor).value();
  EXPECT_EQ(report.turns_ok, 1);
  EXPECT_EQ(report.turns_failed, 1);
  EXPECT_EQ(report.token_counts, executor.token_counts());
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_THAT(report.failures[0], AllOf(HasSubstr("django__1 turn 3"), HasSubstr(server.url())));
}

}  // namespace
}  // namespace espalier
