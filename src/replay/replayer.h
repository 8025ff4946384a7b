// Plays a workload turn by turn the way the official harness does: one request at a time, conversations in file order, every prompt from
// the recorded history; a failed turn ends its conversation. Who answers is behind TurnExecutor: an engine in this process or a server.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "replay/replay_report.h"
#include "replay/workload.h"

namespace espalier {

// One answered turn.
struct TurnOutcome {
  int64_t prompt_tokens = 0;
  int64_t hot_tokens = 0;
  int64_t output_tokens = 0;
  // Tokens that came after the first chunk, the divisor of TPOT. In process the engine's own count is exact: output tokens less those of
  // the first event that carried text. Against a server the harness re-tokenises what followed the first chunk, by the chat template.
  int64_t tokens_after_first = 0;
  std::optional<double> ttft_ms = {};  // from issue to the first text; none for an empty answer
  double latency_ms = 0.0;             // from issue to the end
  std::string content = {};            // without reasoning and calls
  Json tool_calls = Json::array();     // in OpenAI shape
  std::string finish_reason = {};      // empty: none was given
  std::string cold_reason = {};     // why the first cold token of the prompt was cold; empty: none was avoidable
};

// A call in OpenAI shape, as TurnOutcome::tool_calls holds it.
Json tool_call(std::string_view name, std::string_view arguments);

struct TurnRequest {
  const Conversation& conversation;
  const ConversationTurn& turn;
  int64_t max_tokens = 0;
};

class TurnExecutor {
 public:
  virtual ~TurnExecutor() = default;
  // Runs one turn to its end. kCancelled ends the whole replay; any other error fails the turn.
  virtual Result<TurnOutcome> run(const TurnRequest& request) = 0;
  // Who counted the tokens of the turns so far, for the report.
  virtual std::string token_counts() const = 0;
};

struct ReplayOptions {
  int64_t num_conversations = 0;  // the first ones; 0: all
  int64_t num_turns = 0;          // the first ones of each conversation; 0: all
  int64_t max_tokens = 1024;      // of each answer
};

struct ReplayProgress {
  const TurnRequest& request;
  const Result<TurnOutcome>& outcome;
  int64_t turns_done = 0;   // this one included, and those that its failure leaves out
  int64_t turns_total = 0;
  int64_t turns_failed = 0;
  int64_t prompt_tokens = 0;
  int64_t hot_tokens = 0;
  double elapsed_s = 0.0;
};
using ProgressSink = std::function<void(const ReplayProgress&)>;

// The answer of a turn as every executor records it, so that runs can be compared whoever answered: {"conversation", "turn", "content",
// "tool_calls": [{"name", "arguments"}], "finish_reason"}. A failed turn has no content, no calls and null.
Json reply_record(const TurnRequest& request, const Result<TurnOutcome>& outcome);

// "turn 12/1007 django__django-16899, 96.6 % hot, 0 failed, 14.2 s": without a newline.
std::string progress_line(const ReplayProgress& progress);

// `progress`, if any, is called after each turn that was run. Errors: kInvalidArgument names the option; kCancelled as given by `executor`.
// Turns of a failed conversation that are not run count as failed and, as in the harness, as issued turns with a latency of zero.
Result<ReplayReport> replay(const Workload& workload, const ReplayOptions& options, TurnExecutor& executor, const ProgressSink& progress = {});

}  // namespace espalier
