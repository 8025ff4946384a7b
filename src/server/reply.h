// What the tokens of a request become for its client: frames of a stream as they come, or one body at the end. One object a request, used
// by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "server/api_error.h"
#include "tokenizer/tokenizer.h"

namespace espalier {

struct ReplyHead {
  std::string id;     // "chatcmpl-..."
  std::string model;  // as the client named it
  int64_t created = 0;  // seconds since 1970
};

struct ReplyForm {
  bool stream = false;
  bool include_usage = false;
  bool logprobs = false;
};

class Reply {
 public:
  virtual ~Reply() = default;

  // An event of the request's `prompt`-th stream. Returns what a streaming client reads next, maybe nothing.
  virtual std::string on_event(size_t prompt, const TokenEvent& event) = 0;
  // Nothing further is wanted of any choice: what still runs may be cancelled.
  virtual bool satisfied() const = 0;
  // Everything was read: the last frames, or the whole body.
  virtual std::string finish(const RequestStats& stats) = 0;

  // Of the choices together, for the log: "stop", "length", "tool_calls"; the first one's where they differ.
  virtual std::string finish_reason() const = 0;
  virtual bool empty() const = 0;            // no choice has any text or call
  virtual int64_t num_tool_calls() const = 0;
  virtual bool has_stray_call() const = 0;   // markup of a call was left in the text, because it was none
};

// What every body and every chunk of a reply has: `object` says which of them it is.
Json reply_document(const ReplyHead& head, std::string_view object, Json choices);

// One server-sent event of one line.
std::string sse_frame(const Json& document);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
// The end of a stream that failed.
std::string sse_error(const ApiError& error);

Json usage_json(const RequestStats& stats);
// The `espalier` object of a reply: what its numbers mean is in docs/server-api.md.
Json details_json(const RequestStats& stats);

// {"token","logprob","bytes"}
Json logprob_json(const Tokenizer& tokenizer, TokenId token, float logprob);

// Log-probabilities of a choice on their way out: an entry a token, handed on once its text is shown. Tokens that never show (a stop
// string, the end of the reply) have none.
class LogprobQueue {
 public:
  void add(Json entry) { entries_.push_back(std::move(entry)); }
  // The first so many tokens of the choice are shown.
  void show(int64_t num_tokens) { shown_ = static_cast<size_t>(num_tokens); }
  // Those shown and not taken yet.
  std::vector<Json> take();

 private:
  std::vector<Json> entries_;
  size_t shown_ = 0, taken_ = 0;
};

}  // namespace espalier
