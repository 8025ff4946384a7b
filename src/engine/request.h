// What goes into the engine and what comes out of it. Plain data, except TokenStream, which one consumer thread reads while the
// engine thread writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_id.h"
#include "sampling/sampler.h"
#include "sampling/sampling_params.h"
#include "sampling/token_constraint.h"
#include "tokenizer/marked_text.h"

namespace espalier {

enum class ReplyIds {
  kAdopt,      // where the prompt repeats a known text, its known ids are taken, those of generated replies included
  kCanonical,  // every prompt is tokenised afresh
};

struct Request {
  MarkedText prompt;                     // the rendered prompt ...
  std::vector<TokenId> prompt_ids;       // ... or its ids, which then win
  std::vector<size_t> branch_points;     // byte lengths of `prompt` at which later prompts are likely to leave it (ChatTemplate's probes)
  SamplingParams sampling;
  int32_t num_choices = 1;               // replies to the same prompt; they share its computation
  int64_t max_new_tokens = -1;           // -1: up to the context limit
  std::vector<std::string> stop;         // the reply ends before the first of these
  bool ignore_eos = false;
  std::vector<TokenId> forced_ids;       // the reply begins with these, whatever the model prefers
  // Restricts the tokens after the forced ones, which it is never shown; each choice advances a copy of its own. Null: every token may come.
  std::shared_ptr<const TokenConstraint> constraint;
  ReplyIds reply_ids = ReplyIds::kAdopt;
};

inline constexpr int32_t kMaxChoices = 64;
inline constexpr size_t kMaxStops = 16;
inline constexpr size_t kMaxStopBytes = 1024;

enum class FinishReason { kStop, kLength, kCancelled };
std::string_view finish_reason_name(FinishReason reason);  // "stop", "length", "cancelled"

// One event for each token of a choice, in order and at once, and a last one without a token. Text comes when it is certain: a part of a
// character, or what may still become a stop string, with a later event or the last one. `tokens_shown` ties the two together: after each
// event the first so many tokens of the choice are those whose text has begun to appear (or that have none and stand before such text). The
// rest, once the choice has finished, has no text: the tokens that spell a stop string, the one that ends a reply, what a cancelled reply
// held back. They were generated and count as output. Nothing is generated after the token that completes a stop string, and where it
// holds text before the stop string, that is shown. What a token is called: Tokenizer::decode and token_bytes of its id.
struct TokenEvent {
  int32_t choice = 0;
  TokenId token = -1;                  // -1 on the last event
  std::string text;                    // whole UTF-8 characters; may be empty
  float logprob = 0.0f;                // with SamplingParams::top_logprobs >= 0
  std::vector<TokenLogprob> top;
  std::optional<FinishReason> finish;  // on the last event of a choice
  int64_t tokens_shown = 0;
};

// Complete when every choice has finished.
struct RequestStats {
  int64_t prompt_tokens = 0;
  int64_t hot_tokens = 0;       // prompt tokens taken from a snapshot: never computed for this request
  int64_t adopted_tokens = 0;   // prompt ids taken from generated replies instead of the tokenizer
  int64_t output_tokens = 0;    // of all choices
  int64_t preemptions = 0;
  double queue_ms = 0.0;        // submit to first computation
  double first_token_ms = 0.0;  // submit to first token
  double total_ms = 0.0;        // submit to last event
  std::string cold_reason;      // why the first cold token was cold; empty if only unavoidable tokens were computed
};

class RequestChannel;

// The consumer's end of a request. Move-only; dropping it cancels the request. `cancel` may be called from any thread.
class TokenStream {
 public:
  explicit TokenStream(std::shared_ptr<RequestChannel> channel);
  TokenStream(TokenStream&&) noexcept;
  TokenStream& operator=(TokenStream&&) noexcept;
  ~TokenStream();

  // Waits for the next event. Empty: the request is over (see `status`, `stats`).
  std::optional<TokenEvent> next();
  // The same, but gives up after `timeout`: then `timed_out` is true.
  std::optional<TokenEvent> next_for(std::chrono::milliseconds timeout, bool& timed_out);
  // The next event if there is one. `over`: the request is over and everything was read; only ever true without an event.
  std::optional<TokenEvent> poll(bool& over);

  // For consumers that cannot wait. Called, from the engine thread or from this call, whenever there may be something new to read (an
  // event was pushed or the request is over) since the last time; at once if there is already. It must not block or call `next`, and
  // what it throws is dropped. Between two reads one call is enough for any number of events: read until `poll` gives none. The end of the
  // request is always told, and the callback is let go then. A new callback replaces the old one, an empty one takes it away; a call
  // that has begun meanwhile, or when the stream is dropped, goes on, so the callback owns or guards what it touches.
  void on_change(std::function<void()> callback);
  void cancel();
  // Ok, or why the request failed. Meaningful once `next` has returned empty or `poll` has said `over`.
  Status status() const;
  RequestStats stats() const;

 private:
  void drop();

  std::shared_ptr<RequestChannel> channel_;
};

}  // namespace espalier
