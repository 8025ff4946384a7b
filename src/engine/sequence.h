// One choice of one request while it is queued or running: its ids, what of them is committed, and what its reply looks like so far.
// Owned by the engine thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/prefix_cache.h"
#include "engine/prompt_encoder.h"
#include "engine/request.h"
#include "engine/request_channel.h"
#include "engine/stop_matcher.h"
#include "sampling/token_counts.h"
#include "tokenizer/detokenizer.h"

namespace espalier {

using Clock = std::chrono::steady_clock;

inline double ms_between(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double, std::milli>(to - from).count(); }

// What all choices of a request share.
struct RequestContext {
  Request request;
  EncodedPrompt prompt;
  std::shared_ptr<RequestChannel> channel;
  Clock::time_point submitted;
  RequestStats stats;
  int32_t choices_left = 0;
  bool started = false;      // some of it has run: what was hot is settled
  int64_t prompt_reached = 0;  // prompt tokens hot or computed so far
  bool prompt_done = false;  // the first choice has computed the prompt: the others may start
  TokenCounts prompt_counts; // with penalties: shared by all choices
  PinnedSnapshot fork;       // of the prompt but its last token, while other choices still have to start from it
  std::optional<Error> failed;
};

struct Sequence {
  Sequence(std::shared_ptr<RequestContext> context, int32_t choice_index, std::shared_ptr<const Tokenizer> tokenizer);

  std::shared_ptr<RequestContext> context;
  int32_t choice = 0;
  std::vector<TokenId> ids;     // prompt, then reply; empty until it is first to start
  int64_t max_tokens = 0;       // ids.size() never exceeds it
  std::optional<SequenceState> state;   // pages and state slot, while running
  std::vector<int64_t> capture_points;  // token counts still to be captured, ascending
  PinnedSnapshot pin;           // what it starts from: its own state after preemption, or the prompt's for a later choice
  Clock::time_point queued_since;
  Clock::time_point running_since;
  int64_t steps_run = 0;  // since it was last started: whoever has not moved yet is not set aside

  int64_t committed() const { return state.has_value() ? state->num_tokens() : 0; }
  int64_t pending() const { return static_cast<int64_t>(ids.size()) - committed(); }
  int64_t reply_length() const { return ids.empty() ? 0 : static_cast<int64_t>(ids.size() - context->prompt.ids.size()); }
  std::span<const TokenId> reply() const { return std::span(ids).last(static_cast<size_t>(reply_length())); }
  bool cancelled() const { return context->channel->cancelled(); }

  // Takes the next token of the reply, tells the consumer, and says whether the reply is over.
  std::optional<FinishReason> accept(const Sample& sample, std::span<const TokenId> stop_ids);
  // Sends the last event of this choice.
  void finish(FinishReason reason);

  TokenCounts counts;
  std::unique_ptr<TokenConstraint> constraint;

 private:
  // A token whose text has not begun to be shown.
  struct HeldToken {
    size_t begin;  // of its text in that of the reply, in bytes
    bool has_text;
  };
  std::string show(std::string text);  // counts it, and the tokens it shows

  std::shared_ptr<const Tokenizer> tokenizer_;
  StreamingDetokenizer detokenizer_;
  StopMatcher stops_;
  size_t decoded_bytes_ = 0;  // of text that the detokenizer gave
  size_t shown_bytes_ = 0;    // of these, sent
  int64_t tokens_shown_ = 0;
  std::deque<HeldToken> held_;
};

}  // namespace espalier
