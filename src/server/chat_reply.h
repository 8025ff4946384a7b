// Replies of /v1/chat/completions: text split into reasoning, content and tool calls while it arrives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/reply_parser.h"
#include "server/reply.h"

namespace espalier {

struct ChatReplyOptions {
  ReplyHead head;
  ReplyForm form;
  ReplyParserOptions parser;
  int32_t num_choices = 1;
  bool parallel_tool_calls = true;  // false: a choice ends with its first call
};

class ChatReply final : public Reply {
 public:
  ChatReply(ChatReplyOptions options, std::shared_ptr<const Tokenizer> tokenizer);

  std::string on_event(size_t prompt, const TokenEvent& event) override;
  bool satisfied() const override { return unfinished_ == 0; }
  std::string finish(const RequestStats& stats) override;
  std::string finish_reason() const override { return choices_.front().finish_reason; }
  bool empty() const override;
  int64_t num_tool_calls() const override;
  bool has_stray_call() const override;

 private:
  struct Choice {
    explicit Choice(const ReplyParserOptions& options) : parser(options) {}
    ReplyParser parser;
    ParsedReply whole;
    std::string finish_reason;           // empty while it goes on
    LogprobQueue logprobs;
    bool begun = false;                  // a frame with the role was sent
  };

  Json chunk(size_t index, Json delta);
  std::string delta_frame(size_t index, const ReplyDelta& delta);
  Json finish_chunk(size_t index);
  std::string call_id(size_t choice, size_t call) const;
  void add_logprobs(Choice& choice, const TokenEvent& event);
  Json choice_json(size_t index);
  Json details(const RequestStats& stats) const;

  ChatReplyOptions options_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<Choice> choices_;
  size_t unfinished_;
  size_t last_finished_ = 0;  // the choice whose finish waits for the numbers of the request
};

}  // namespace espalier
