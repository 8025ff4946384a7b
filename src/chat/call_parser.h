// Splits the text of a reply behind its reasoning into content and calls: one implementation for each way in which models write calls.
// It writes to the DeltaWriter it was made with. Not thread-safe.
#pragma once

#include <string_view>

#include "chat/outside_text.h"

namespace espalier {

class CallParser {
 public:
  explicit CallParser(DeltaWriter& deltas) : deltas_(deltas), outside_(deltas) {}
  virtual ~CallParser() = default;
  CallParser(const CallParser&) = delete;
  CallParser& operator=(const CallParser&) = delete;

  // More text, valid UTF-8.
  virtual void feed(std::string_view text) = 0;
  virtual void finish() = 0;

  const std::string& unplaced_text() const { return outside_.unplaced(); }

 protected:
  DeltaWriter& deltas_;
  OutsideText outside_;
};

// Whether `name` looks like one of a function: letters, digits and "_.:/-".
bool is_function_name(std::string_view name);

}  // namespace espalier
