#include "chat/delta_writer.h"

#include <utility>

namespace espalier {

void DeltaWriter::append(ReplyDelta::Kind kind, std::string_view text, int32_t call) {
  if (text.empty()) return;
  if (!deltas_.empty() && deltas_.back().kind == kind && deltas_.back().call == call) {
    deltas_.back().text += text;
  } else {
    deltas_.push_back({.kind = kind, .text = std::string(text), .call = call});
  }
}

void DeltaWriter::begin_call(std::string_view name) {
  arguments_ = Arguments::kNone;
  append(ReplyDelta::Kind::kCallBegin, name, ++call_);
}

void DeltaWriter::member(std::string_view key, std::string_view value) {
  std::string text(1, arguments_ == Arguments::kNone ? '{' : ',');
  arguments_ = Arguments::kOpen;
  text += key;
  text += ':';
  text += value;
  append(ReplyDelta::Kind::kCallArguments, text, call_);
}

void DeltaWriter::arguments(std::string_view object) {
  arguments_ = Arguments::kClosed;
  append(ReplyDelta::Kind::kCallArguments, object, call_);
}

void DeltaWriter::close_arguments() {
  if (arguments_ != Arguments::kClosed) append(ReplyDelta::Kind::kCallArguments, arguments_ == Arguments::kNone ? "{}" : "}", call_);
  arguments_ = Arguments::kClosed;
}

void DeltaWriter::end_call() {
  close_arguments();
  deltas_.push_back({.kind = ReplyDelta::Kind::kCallEnd, .call = call_});
}

void DeltaWriter::break_off_call() { close_arguments(); }

std::vector<ReplyDelta> DeltaWriter::take() { return std::exchange(deltas_, {}); }

}  // namespace espalier
