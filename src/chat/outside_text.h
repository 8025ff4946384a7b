// The text of a reply that stands outside its calls. Before the first call it is content, of which whitespace alone is shown only once
// more follows or the reply ends without a call; behind that it belongs to no field of an answer and is kept aside. Not thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "chat/delta_writer.h"

namespace espalier {

class OutsideText {
 public:
  explicit OutsideText(DeltaWriter& deltas) : deltas_(deltas) {}

  void add(std::string_view text);
  void begin_call();
  // Markup of a call ends here: whitespace beside it is no text.
  void markup();
  void finish();

  bool calls_begun() const { return calls_begun_; }
  // Nothing but whitespace since the last markup of a call.
  bool beside_markup() const { return calls_begun_ && !solid_; }
  const std::string& unplaced() const { return unplaced_; }

 private:
  DeltaWriter& deltas_;
  bool calls_begun_ = false;
  bool solid_ = false;    // more than whitespace was added since the beginning or the last markup
  std::string blanks_;    // whitespace of which it is not known whether text follows
  std::string unplaced_;
};

}  // namespace espalier
