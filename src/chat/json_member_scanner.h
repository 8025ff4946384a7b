// Finds the members of one JSON object while its text arrives: where each key and value lies, not what they say. Looks at every byte once.
// Not thread-safe.
#pragma once

#include <cstddef>

#include <string_view>

namespace espalier {

class JsonMemberScanner {
 public:
  enum class Event {
    kNeedsMore,
    kObjectBegins,  // the value of the member begins with "{": `next` scans it as any value; a caller that reads it itself calls `resume_at`
    kMember,        // the member is whole
    kEnd,           // of the object
    kBroken,        // no JSON object
  };

  // The object's "{" stands before `begin`.
  explicit JsonMemberScanner(size_t begin) : at_(begin) {}

  // `text` as before or longer.
  Event next(std::string_view text);
  void resume_at(size_t behind_value);

  // One past what was scanned.
  size_t at() const { return at_; }
  // Of the member that was found last, quotes included. Of the one that is open, if its value has begun.
  std::string_view key(std::string_view text) const { return text.substr(key_begin_, key_end_ - key_begin_); }
  size_t value_begin() const { return value_begin_; }
  std::string_view value(std::string_view text) const { return text.substr(value_begin_, value_end_ - value_begin_); }

 private:
  bool scan_string(std::string_view text);

  enum class State { kBeforeFirst, kBeforeKey, kKey, kBeforeColon, kBeforeValue, kValue, kBehindValue } state_ = State::kBeforeFirst;
  size_t at_;
  size_t key_begin_ = 0, key_end_ = 0;
  size_t value_begin_ = 0, value_end_ = 0;
  int64_t depth_ = 0;       // of lists and objects inside the value
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace espalier
