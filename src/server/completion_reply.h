// Replies of /v1/completions: text as it is. The choices of the i-th prompt are numbered from i * n.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/reply.h"

namespace espalier {

struct CompletionReplyOptions {
  ReplyHead head;
  ReplyForm form;
  size_t num_prompts = 1;
  int32_t num_choices = 1;  // of each prompt
};

class CompletionReply final : public Reply {
 public:
  CompletionReply(CompletionReplyOptions options, std::shared_ptr<const Tokenizer> tokenizer);

  std::string on_event(size_t prompt, const TokenEvent& event) override;
  bool satisfied() const override { return unfinished_ == 0; }
  std::string finish(const RequestStats& stats) override;
  std::string finish_reason() const override { return choices_.front().finish_reason; }
  bool empty() const override;
  int64_t num_tool_calls() const override { return 0; }
  bool has_stray_call() const override { return false; }

 private:
  struct Choice {
    std::string text;
    std::string finish_reason;
    LogprobQueue logprobs;    // entries as in a chat, each with its "text_offset"
    size_t token_bytes = 0;   // of all tokens so far: where the next one begins
  };

  void add_logprobs(Choice& choice, const TokenEvent& event);
  Json choice_json(size_t index, const std::string& text);
  static Json logprobs_json(Choice& choice);
  Json document(Json choices) const;

  CompletionReplyOptions options_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<Choice> choices_;
  size_t unfinished_;
  size_t last_finished_ = 0;
};

}  // namespace espalier
