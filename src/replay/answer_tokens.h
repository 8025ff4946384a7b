// Counts the tokens of prompts and answers the way the official harness does: with its own tokenizer and chat template, whatever the server
// says. Immutable, usable from every thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "chat/prompt.h"
#include "replay/streamed_answer.h"
#include "replay/workload.h"
#include "tokenizer/tokenizer.h"

namespace espalier {

class AnswerTokens {
 public:
  AnswerTokens(std::shared_ptr<const Tokenizer> tokenizer, std::shared_ptr<const ChatTemplate> chat_template);

  // OSL of a whole answer, or the divisor of TPOT of what came after its first chunk. Plain content: its tokens. With calls or reasoning:
  // what the answer adds to an assistant message as the template renders it, at least 0. Where the template cannot render it (arguments
  // that are no JSON object, a call without its name): the tokens of content, reasoning and the calls as JSON, joined by newlines.
  int64_t count(const AnswerParts& parts) const;

  // ISL: the prompt of a turn, rendered with the template's own choice about thinking.
  Result<int64_t> count_prompt(const Conversation& conversation, const ConversationTurn& turn) const;

 private:
  int64_t num_tokens(std::string_view text) const;
  Result<int64_t> num_message_tokens(const Json& assistant) const;
  Result<int64_t> count_rendered(const AnswerParts& parts) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const ChatTemplate> template_;
};

}  // namespace espalier
