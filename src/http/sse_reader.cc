#include "http/sse_reader.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace espalier {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

Result<std::vector<SseEvent>> SseReader::feed(std::string_view bytes) {
  std::vector<SseEvent> complete;
  while (!bytes.empty() && !done_) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (event_.data.size() + line_.size() + end > max_event_bytes_) {
      return make_error(ErrorCode::kResourceExhausted, "an event of the stream is larger than {} bytes", max_event_bytes_);
    }
    line_ += bytes.substr(0, end);
    if (end == bytes.size()) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(complete);
  }
  return complete;
}

void SseReader::end_line(std::vector<SseEvent>& complete) {
  const std::string whole = std::exchange(line_, {});
  std::string_view line = whole;
  if (std::exchange(first_line_, false) && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.empty()) {
    SseEvent event = std::exchange(event_, {});
    if (!std::exchange(has_data_, false)) return;
    done_ = event.data == "[DONE]";
    if (!done_) complete.push_back(std::move(event));
    return;
  }
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string_view field = line.substr(0, colon);
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
  } else if (field == "event") {
    event_.type = value;
  }
}

}  // namespace espalier
