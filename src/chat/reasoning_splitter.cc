#include "chat/reasoning_splitter.h"

#include <algorithm>

#include "chat/reply_text.h"

namespace espalier {
namespace {

constexpr std::string_view kThinkOpener = "<think>";
constexpr std::string_view kThinkCloser = "</think>";
constexpr std::string_view kCallOpener = "<tool_call>";

}  // namespace

ReasoningSplitter::Pieces ReasoningSplitter::feed(std::string_view text) {
  Pieces out;
  held_ += text;
  while (take(out)) {
  }
  return out;
}

ReasoningSplitter::Pieces ReasoningSplitter::finish() {
  Pieces out;
  release(out, held_.size());
  return out;
}

// The text before `end` is reasoning; what is behind stays.
void ReasoningSplitter::release(Pieces& out, size_t end) {
  out.reasoning.append(held_, 0, end);
  held_.erase(0, end);
  at_ = 0;
}

// One step; false if what comes next decides.
bool ReasoningSplitter::take(Pieces& out) {
  const auto rest = [this] { return std::string_view(held_).substr(at_); };
  switch (state_) {
    case State::kBeginning: {  // the prompt opened the block; some models open it again
      at_ = std::min(held_.find_first_not_of(kBlanks, at_), held_.size());
      const TagMatch opener = match_tag(rest(), kThinkOpener);
      if (opener == TagMatch::kPartial) return false;
      if (opener == TagMatch::kFull) held_.erase(at_, kThinkOpener.size());
      state_ = State::kReasoning;
      return true;
    }
    case State::kReasoning: {
      at_ = std::min(held_.find('<', at_), held_.size());
      const TagMatch closer = match_tag(rest(), kThinkCloser);
      const TagMatch call = match_tag(rest(), kCallOpener);
      if (closer == TagMatch::kFull) {
        const size_t behind = at_ + kThinkCloser.size();
        out.reasoning.append(held_, 0, at_);
        held_.erase(0, behind);
        state_ = State::kRest;
        return true;
      }
      if (call == TagMatch::kFull) {
        call_at_ = at_;
        at_ += kCallOpener.size();
        state_ = State::kBehindCallOpener;
        return true;
      }
      const bool undecided = at_ == held_.size() || closer == TagMatch::kPartial || call == TagMatch::kPartial;
      if (!undecided) {
        ++at_;
        return true;
      }
      release(out, at_);
      return false;
    }
    case State::kBehindCallOpener: {
      at_ = std::min(held_.find_first_not_of(kBlanks, at_), held_.size());
      const TagMatch call = match_tag(rest(), call_beginning_);
      if (call == TagMatch::kPartial) return false;
      if (call == TagMatch::kFull) {
        out.reasoning.append(held_, 0, call_at_);
        held_.erase(0, call_at_);
        state_ = State::kRest;
      } else {
        state_ = State::kReasoning;
      }
      return true;
    }
    case State::kRest:
      out.rest += held_;
      held_.clear();
      return false;
  }
  return false;
}

}  // namespace espalier
