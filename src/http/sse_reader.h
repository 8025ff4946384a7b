// Takes server-sent events out of a stream of bytes, whatever pieces it arrives in. A pure function of the bytes so far; the specification
// is the chapter "Server-sent events" of the HTML standard. One object a stream; not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espalier {

struct SseEvent {
  std::string type = {};  // of its last `event:` line; empty: a plain message
  std::string data = {};  // its `data:` lines, joined by newlines
};

class SseReader {
 public:
  // A line, or the data of an event together with its next line, of more than `max_event_bytes` is an error.
  explicit SseReader(size_t max_event_bytes = size_t{64} << 20) : max_event_bytes_(max_event_bytes) {}

  // The events that these bytes complete: each ends with an empty line; lines end with LF, CRLF or CR. Comments, fields other than `data`
  // and `event`, and events without data are left out. kResourceExhausted beyond the limit; the reader is then useless.
  Result<std::vector<SseEvent>> feed(std::string_view bytes);

  // The stream has sent the event `[DONE]`, which ends a stream of the OpenAI API. It is no event, and what follows it is ignored.
  bool done() const { return done_; }
  // Bytes of an event that is not complete yet. At the end of a stream: something was cut off.
  bool in_event() const { return !line_.empty() || has_data_; }

 private:
  void end_line(std::vector<SseEvent>& complete);

  size_t max_event_bytes_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;  // a LF would belong to the line end before it
  bool first_line_ = true;
  bool done_ = false;
};

}  // namespace espalier
