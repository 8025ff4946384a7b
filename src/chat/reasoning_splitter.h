// Splits a reply that begins inside a think block into reasoning and what follows it, while it arrives. Reasoning ends with </think>, or
// without it where a call begins: models forget the tag there. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace espalier {

class ReasoningSplitter {
 public:
  // `call_beginning`: what stands behind <tool_call>, whitespace aside, where a call begins.
  explicit ReasoningSplitter(std::string_view call_beginning) : call_beginning_(call_beginning) {}

  struct Pieces {
    std::string reasoning;
    std::string rest;  // behind the reasoning
  };
  // What of the text so far has become certain.
  Pieces feed(std::string_view text);
  Pieces finish();

 private:
  bool take(Pieces& out);
  void release(Pieces& out, size_t end);

  std::string call_beginning_;
  std::string held_;
  size_t at_ = 0;       // of `held_`: looked at before here
  size_t call_at_ = 0;  // where the <tool_call> begins
  enum class State { kBeginning, kReasoning, kBehindCallOpener, kRest } state_ = State::kBeginning;
};

}  // namespace espalier
