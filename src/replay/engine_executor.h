// Plays turns on an engine in this process: renders the prompt as the server would, with thinking off, and reads the reply to its end.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "chat/prompt.h"
#include "engine/engine.h"
#include "replay/replayer.h"

namespace espalier {

class EngineExecutor : public TurnExecutor {
 public:
  // `on_text`, if any, sees the reply as it grows. `interrupted`, if given, is looked at while waiting: once true, `run` cancels the turn
  // and returns kCancelled.
  EngineExecutor(Engine& engine, std::shared_ptr<const ChatTemplate> chat_template, std::function<void(std::string_view)> on_text = {},
                 const std::atomic<bool>* interrupted = nullptr)
      : engine_(engine), template_(std::move(chat_template)), on_text_(std::move(on_text)), interrupted_(interrupted) {}

  Result<TurnOutcome> run(const TurnRequest& request) override;
  std::string token_counts() const override { return "by the engine"; }

 private:
  Engine& engine_;
  std::shared_ptr<const ChatTemplate> template_;
  std::function<void(std::string_view)> on_text_;
  const std::atomic<bool>* interrupted_;
};

// The prompt of a turn as every executor in this process sends it.
Result<RenderedPrompt> render_turn(const ChatTemplate& chat_template, const Conversation& conversation, const ConversationTurn& turn);

// Fills content and calls with what a client of the server has of such a reply when the answer is over: a call that the token limit cut is
// among them, with the parameters that had begun, since the server closes its arguments.
void read_answer(std::string_view text, ToolCallFormat format, const Json& tools, TurnOutcome& outcome);

}  // namespace espalier
