#include "chat/outside_text.h"

#include "chat/reply_text.h"

namespace espalier {

void OutsideText::add(std::string_view text) {
  if (!solid_ && is_blank(text)) {
    blanks_ += text;
    return;
  }
  solid_ = true;
  const auto put = [this](std::string_view piece) {
    if (calls_begun_) {
      unplaced_ += piece;
    } else {
      deltas_.content(piece);
    }
  };
  put(blanks_);
  blanks_.clear();
  put(text);
}

void OutsideText::begin_call() {
  calls_begun_ = true;
  markup();
}

void OutsideText::markup() {
  blanks_.clear();
  solid_ = false;
}

void OutsideText::finish() {
  if (!calls_begun_) deltas_.content(blanks_);
  blanks_.clear();
}

}  // namespace espalier
