#include "replay/http_executor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/format.h"
#include "http/sse_reader.h"
#include "replay/request_body.h"

namespace espalier {
namespace {

constexpr double kTurnLimitMs = 600'000.0;  // the harness's timer of a turn

HttpRequest http_request(const TurnRequest& turn, const std::string& api_key) {
  HttpRequest request{.method = "POST", .path = "/v1/chat/completions"};
  if (!api_key.empty()) request.headers.push_back({"Authorization", "Bearer " + api_key});
  request.headers.push_back({"Content-Type", "application/json"});
  request.headers.push_back({"Accept", "text/event-stream"});
  request.headers.push_back({"X-Session-ID", turn.conversation.id});
  request.body = request_body(turn.conversation, turn.turn, {.max_completion_tokens = turn.max_tokens});
  return request;
}

// Why an answer that arrived whole is none all the same.
Status check_complete(const StreamedAnswer& answer, const SseReader& events, const HttpResponse& response) {
  if (answer.num_chunks() == 0 && !response.content_type.starts_with("text/event-stream")) {
    return make_error(ErrorCode::kIo, "the answer is no stream of events but '{}'", response.content_type);
  }
  if (answer.finish_reason().empty()) {
    return make_error(ErrorCode::kIo, "the stream ended {} without a finish_reason", events.in_event() ? "in the middle of an event," : "early,");
  }
  if (!answer.begun()) return make_error(ErrorCode::kIo, "the answer is empty");
  return Ok{};
}

Json openai_calls(const std::vector<AnswerCall>& calls) {
  Json array = Json::array();
  for (const AnswerCall& call : calls) {
    array.push_back({{"type", call.type}, {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return array;
}

}  // namespace

Result<TurnOutcome> HttpExecutor::run(const TurnRequest& turn) {
  using Clock = std::chrono::steady_clock;
  const auto issued = Clock::now();
  const auto since_issue_ms = [&] { return std::chrono::duration<double, std::milli>(Clock::now() - issued).count(); };

  TurnOutcome outcome;
  SseReader reader;
  StreamedAnswer answer;
  const auto read = [&](std::string_view piece) -> Status {
    ESPALIER_ASSIGN(const std::vector<SseEvent> events, reader.feed(piece));
    for (const SseEvent& event : events) {
      ESPALIER_ASSIGN(const std::string shown, answer.add(event.data));
      if (!outcome.ttft_ms && answer.begun()) outcome.ttft_ms = since_issue_ms();
      if (options_.on_text && !shown.empty()) options_.on_text(shown);
    }
    if (since_issue_ms() > kTurnLimitMs) return make_error(ErrorCode::kIo, "no whole answer after {:.0f} s", kTurnLimitMs / 1000.0);
    return Ok{};
  };
  Status stream = Ok{};
  const Result<HttpResponse> response = client_->send(http_request(turn, options_.api_key), [&](std::string_view piece) {
    stream = read(piece);
    return stream.ok();
  });
  outcome.latency_ms = since_issue_ms();
  if (!stream.ok()) return std::move(stream).error();
  if (!response.ok()) return response.error();
  if (response->status != 200) return make_error(ErrorCode::kIo, "status {}: {}", response->status, error_words(response->body));
  ESPALIER_TRY(check_complete(answer, reader, *response));

  outcome.content = answer.whole().content;
  outcome.tool_calls = openai_calls(answer.whole().calls);
  outcome.finish_reason = answer.finish_reason();
  ESPALIER_TRY(fill_counts(turn, answer, outcome));
  return outcome;
}

Status HttpExecutor::fill_counts(const TurnRequest& turn, const StreamedAnswer& answer, TurnOutcome& outcome) {
  ++turns_answered_;
  const AnswerCounts& said = answer.counts();
  outcome.hot_tokens = said.cached_tokens.value_or(0);
  outcome.cold_reason = said.cold_reason;
  if (said.prompt_tokens) {
    outcome.prompt_tokens = *said.prompt_tokens;
  } else {
    ++turns_without_prompt_count_;
    if (options_.tokens) {
      ESPALIER_ASSIGN(outcome.prompt_tokens, options_.tokens->count_prompt(turn.conversation, turn.turn));
    }
  }
  if (options_.tokens) {
    outcome.output_tokens = options_.tokens->count(answer.whole());
    outcome.tokens_after_first = options_.tokens->count(answer.after_first_chunk());
  } else {
    if (!said.completion_tokens) ++turns_without_answer_count_;
    outcome.output_tokens = said.completion_tokens.value_or(0);
    outcome.tokens_after_first = std::max<int64_t>(0, outcome.output_tokens - 1);
  }
  return Ok{};
}

std::string HttpExecutor::token_counts() const {
  if (turns_answered_ == 0) return "none";
  std::string prompts = "prompts by the server";
  if (turns_without_prompt_count_ > 0) {
    prompts = format("prompts of {} turns {}", turns_without_prompt_count_, options_.tokens ? "by our tokenizer" : "unknown");
  }
  if (options_.tokens) return prompts + ", answers by the harness's rules";
  if (turns_without_answer_count_ > 0) return format("{}, answers of {} turns unknown", prompts, turns_without_answer_count_);
  return prompts + ", answers by the server (TPOT over all tokens but one)";
}

}  // namespace espalier
