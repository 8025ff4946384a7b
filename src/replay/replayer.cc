#include "replay/replayer.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include "base/format.h"

namespace espalier {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxFailuresKept = 5;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <typename T>
std::span<const T> first_of(const std::vector<T>& all, int64_t limit) {
  const size_t count = limit == 0 ? all.size() : std::min(all.size(), static_cast<size_t>(limit));
  return std::span<const T>(all).first(count);
}

Status validate(const ReplayOptions& options) {
  if (options.num_conversations < 0) return make_error(ErrorCode::kInvalidArgument, "conversations must be at least 0, is {}", options.num_conversations);
  if (options.num_turns < 0) return make_error(ErrorCode::kInvalidArgument, "turns must be at least 0, is {}", options.num_turns);
  if (options.max_tokens < 1) return make_error(ErrorCode::kInvalidArgument, "max tokens must be at least 1, is {}", options.max_tokens);
  return Ok{};
}

// Collects what the turns of a run measured.
class Measurements {
 public:
  void add_answer(const TurnRequest& request, const TurnOutcome& outcome) {
    ++report_.turns_ok;
    report_.prompt_tokens += outcome.prompt_tokens;
    report_.hot_tokens += outcome.hot_tokens;
    report_.output_tokens += outcome.output_tokens;
    latency_ms_.push_back(outcome.latency_ms);
    if (outcome.ttft_ms) {
      ttft_ms_.push_back(*outcome.ttft_ms);
      if (outcome.tokens_after_first > 0) tpot_ms_.push_back((outcome.latency_ms - *outcome.ttft_ms) / static_cast<double>(outcome.tokens_after_first));
    }
    if (!outcome.finish_reason.empty()) ++report_.finish_reasons[outcome.finish_reason];
    if (!outcome.cold_reason.empty()) ++report_.cold_reasons[cold_reason_kind(outcome.cold_reason)];
    add_score(request.conversation, request.turn, &outcome.tool_calls);
  }

  void add_failure(const TurnRequest& request, const Error& error, double latency_ms) {
    if (report_.failures.size() < kMaxFailuresKept) {
      report_.failures.push_back(format("{} turn {}: {}", request.conversation.id, request.turn.number, error.message));
    }
    add_failed(request.conversation, request.turn, latency_ms);
  }

  void add_skipped(const Conversation& conversation, std::span<const ConversationTurn> turns) {
    for (const ConversationTurn& turn : turns) add_failed(conversation, turn, 0.0);
  }

  // So far, without series and score.
  const ReplayReport& totals() const { return report_; }

  ReplayReport finish(double wall_s) && {
    report_.wall_s = wall_s;
    report_.ttft_ms = summarise(std::move(ttft_ms_));
    report_.tpot_ms = summarise(std::move(tpot_ms_));
    report_.latency_ms = summarise(std::move(latency_ms_));
    report_.iou = summarise_iou(scores_);
    return std::move(report_);
  }

 private:
  void add_failed(const Conversation& conversation, const ConversationTurn& turn, double latency_ms) {
    ++report_.turns_failed;
    latency_ms_.push_back(latency_ms);
    add_score(conversation, turn, nullptr);
  }

  void add_score(const Conversation& conversation, const ConversationTurn& turn, const Json* tool_calls) {
    TurnScore score{.conversation_id = conversation.id, .turn = turn.number, .observed = tool_calls != nullptr};
    if (const Json* recorded = conversation.recorded_answer(turn); recorded != nullptr && recorded->contains("tool_calls")) {
      score.recorded = tool_call_actions(recorded->at("tool_calls"));
    }
    if (tool_calls != nullptr) score.answered = tool_call_actions(*tool_calls);
    scores_.push_back(std::move(score));
  }

  ReplayReport report_;
  std::vector<double> ttft_ms_, tpot_ms_, latency_ms_;
  std::vector<TurnScore> scores_;
};

}  // namespace

Json tool_call(std::string_view name, std::string_view arguments) {
  return {{"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
}

Json reply_record(const TurnRequest& request, const Result<TurnOutcome>& outcome) {
  Json record = {{"conversation", request.conversation.id}, {"turn", request.turn.number}, {"content", ""}, {"tool_calls", Json::array()},
                 {"finish_reason", nullptr}};
  if (!outcome.ok()) return record;
  record["content"] = outcome->content;
  for (const Json& call : outcome->tool_calls) {
    record["tool_calls"].push_back(Json::object({{"name", call.at("function").at("name")}, {"arguments", call.at("function").at("arguments")}}));
  }
  record["finish_reason"] = outcome->finish_reason;
  return record;
}

std::string progress_line(const ReplayProgress& progress) {
  const double hot = progress.prompt_tokens == 0 ? 0.0 : 100.0 * static_cast<double>(progress.hot_tokens) / static_cast<double>(progress.prompt_tokens);
  return format("turn {}/{} {}, {:.1f} % hot, {} failed, {:.1f} s", progress.turns_done, progress.turns_total, progress.request.conversation.id, hot,
                progress.turns_failed, progress.elapsed_s);
}

Result<ReplayReport> replay(const Workload& workload, const ReplayOptions& options, TurnExecutor& executor, const ProgressSink& progress) {
  ESPALIER_TRY(validate(options));
  const std::span<const Conversation> conversations = first_of(workload.conversations, options.num_conversations);
  int64_t turns_total = 0;
  for (const Conversation& conversation : conversations) turns_total += static_cast<int64_t>(first_of(conversation.turns, options.num_turns).size());

  Measurements measurements;
  const Clock::time_point start = Clock::now();
  for (const Conversation& conversation : conversations) {
    const std::span<const ConversationTurn> turns = first_of(conversation.turns, options.num_turns);
    bool failed = false;
    for (size_t i = 0; i < turns.size() && !failed; ++i) {
      const TurnRequest request{.conversation = conversation, .turn = turns[i], .max_tokens = options.max_tokens};
      const Clock::time_point issued = Clock::now();
      const Result<TurnOutcome> outcome = executor.run(request);
      failed = !outcome.ok();
      if (failed) {
        if (outcome.error().code == ErrorCode::kCancelled) return outcome.error();
        measurements.add_failure(request, outcome.error(), 1000.0 * seconds_since(issued));
        measurements.add_skipped(conversation, turns.subspan(i + 1));
      } else {
        measurements.add_answer(request, *outcome);
      }
      if (progress) {
        const ReplayReport& totals = measurements.totals();
        progress({.request = request,
                  .outcome = outcome,
                  .turns_done = totals.turns_ok + totals.turns_failed,
                  .turns_total = turns_total,
                  .turns_failed = totals.turns_failed,
                  .prompt_tokens = totals.prompt_tokens,
                  .hot_tokens = totals.hot_tokens,
                  .elapsed_s = seconds_since(start)});
      }
    }
  }
  ReplayReport report = std::move(measurements).finish(seconds_since(start));
  report.token_counts = executor.token_counts();
  return report;
}

}  // namespace espalier
