// Collects what a reply gives, in order: neighbours of one kind become one delta, and the members of a call's arguments one JSON object.
// Not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/reply_parser.h"

namespace espalier {

class DeltaWriter {
 public:
  void reasoning(std::string_view text) { append(ReplyDelta::Kind::kReasoning, text, -1); }
  void content(std::string_view text) { append(ReplyDelta::Kind::kContent, text, -1); }

  // The next call. What follows belongs to it, up to `end_call` or `break_off_call`.
  void begin_call(std::string_view name);
  // One more member of its arguments, key and value as JSON text.
  void member(std::string_view key, std::string_view value);
  // All of its arguments, a JSON object.
  void arguments(std::string_view object);
  void end_call();
  // The reply ended inside the call: its arguments are closed, the call is not.
  void break_off_call();

  std::vector<ReplyDelta> take();

 private:
  void append(ReplyDelta::Kind kind, std::string_view text, int32_t call);
  void close_arguments();

  std::vector<ReplyDelta> deltas_;
  int32_t call_ = -1;
  enum class Arguments { kNone, kOpen, kClosed } arguments_ = Arguments::kNone;
};

}  // namespace espalier
