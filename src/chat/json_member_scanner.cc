#include "chat/json_member_scanner.h"

namespace espalier {
namespace {

bool is_json_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

// From inside a string to behind its closing quote; false if that has not arrived.
bool JsonMemberScanner::scan_string(std::string_view text) {
  for (; at_ < text.size(); ++at_) {
    const char c = text[at_];
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      ++at_;
      in_string_ = false;
      return true;
    }
  }
  return false;
}

JsonMemberScanner::Event JsonMemberScanner::next(std::string_view text) {
  while (at_ < text.size()) {
    if (in_string_) {
      if (!scan_string(text)) break;
      if (state_ == State::kKey) {
        key_end_ = at_;
        state_ = State::kBeforeColon;
      }
      continue;
    }
    const char c = text[at_];
    if (state_ != State::kValue && is_json_blank(c)) {
      ++at_;
      continue;
    }
    switch (state_) {
      case State::kBeforeFirst:
      case State::kBeforeKey:
        if (c == '}' && state_ == State::kBeforeFirst) {
          ++at_;
          return Event::kEnd;
        }
        if (c != '"') return Event::kBroken;
        key_begin_ = at_++;
        in_string_ = true;
        state_ = State::kKey;
        break;
      case State::kBeforeColon:
        if (c != ':') return Event::kBroken;
        ++at_;
        state_ = State::kBeforeValue;
        break;
      case State::kBeforeValue:
        value_begin_ = at_;
        depth_ = 0;
        state_ = State::kValue;
        if (c == '{') return Event::kObjectBegins;
        break;
      case State::kValue:
        if (c == '"') {
          in_string_ = true;
        } else if (c == '{' || c == '[') {
          ++depth_;
        } else if (depth_ == 0 && (c == ',' || c == '}')) {
          value_end_ = at_;
          state_ = State::kBehindValue;
          return Event::kMember;
        } else if (c == '}' || c == ']') {
          if (--depth_ < 0) return Event::kBroken;
        } else if (c == '<') {  // a tag: outside strings JSON has no such character
          return Event::kBroken;
        }
        ++at_;
        break;
      case State::kBehindValue:
        if (c == '}') {
          ++at_;
          return Event::kEnd;
        }
        if (c != ',') return Event::kBroken;
        ++at_;
        state_ = State::kBeforeKey;
        break;
      case State::kKey: return Event::kBroken;  // not reached: inside a key is inside a string
    }
  }
  return Event::kNeedsMore;
}

void JsonMemberScanner::resume_at(size_t behind_value) {
  at_ = value_end_ = behind_value;
  state_ = State::kBehindValue;
}

}  // namespace espalier
