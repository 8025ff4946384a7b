#include "replay/engine_executor.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "chat/messages.h"
#include "chat/reply_parser.h"
#include "chat/tool_schemas.h"

namespace espalier {
namespace {

constexpr uint64_t kSeed = 42;  // as the harness sends it
constexpr std::chrono::milliseconds kLookAround{50};

}  // namespace

Result<RenderedPrompt> render_turn(const ChatTemplate& chat_template, const Conversation& conversation, const ConversationTurn& turn) {
  Json messages = Json::array();
  for (size_t i = 0; i < turn.num_messages; ++i) messages.push_back(conversation.messages[i]);
  ESPALIER_ASSIGN(const ChatInput input, normalise_messages(messages, conversation.tools));
  return chat_template.render_with_branch_points(input, {});
}

void read_answer(std::string_view text, ToolCallFormat format, const Json& tools, TurnOutcome& outcome) {
  ParsedReply reply = parse_reply(text, {.format = format, .tools = std::make_shared<const ToolSchemas>(tools)});
  outcome.content = std::move(reply.content);
  for (const ParsedCall& call : reply.calls) outcome.tool_calls.push_back(tool_call(call.name, call.arguments));
}

Result<TurnOutcome> EngineExecutor::run(const TurnRequest& turn) {
  using Clock = std::chrono::steady_clock;
  const auto issued = Clock::now();
  const auto since_issue_ms = [&] { return std::chrono::duration<double, std::milli>(Clock::now() - issued).count(); };
  ESPALIER_ASSIGN(RenderedPrompt prompt, render_turn(*template_, turn.conversation, turn.turn));
  Request request;
  request.prompt = std::move(prompt.text);
  request.branch_points = std::move(prompt.branch_points);
  request.max_new_tokens = turn.max_tokens;
  request.sampling.seed = kSeed;
  ESPALIER_ASSIGN(TokenStream stream, engine_.submit(std::move(request)));

  TurnOutcome outcome;
  std::string text;
  int64_t tokens_until_text = 0;  // of the event that brought the first text, and of those before it
  while (true) {
    bool timed_out = false;
    const std::optional<TokenEvent> event = stream.next_for(kLookAround, timed_out);
    if (interrupted_ != nullptr && interrupted_->load()) return Error{ErrorCode::kCancelled, "interrupted"};
    if (timed_out) continue;
    if (!event.has_value()) break;
    if (!outcome.ttft_ms.has_value()) {
      tokens_until_text += event->token >= 0 ? 1 : 0;
      if (!event->text.empty()) outcome.ttft_ms = since_issue_ms();
    }
    text += event->text;
    if (on_text_ && !event->text.empty()) on_text_(event->text);
    if (event->finish.has_value()) outcome.finish_reason = finish_reason_name(*event->finish);
  }
  ESPALIER_TRY(stream.status());
  const RequestStats stats = stream.stats();
  outcome.latency_ms = since_issue_ms();
  outcome.prompt_tokens = stats.prompt_tokens;
  outcome.hot_tokens = stats.hot_tokens;
  outcome.output_tokens = stats.output_tokens;
  outcome.tokens_after_first = stats.output_tokens - tokens_until_text;
  read_answer(text, template_->tool_call_format(), turn.conversation.tools, outcome);
  if (!outcome.tool_calls.empty() && outcome.finish_reason == "stop") outcome.finish_reason = "tool_calls";
  outcome.cold_reason = stats.cold_reason;
  return outcome;
}

}  // namespace espalier
