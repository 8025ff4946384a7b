// Any bytes as the body of a streamed answer: in pieces it gives the events it gives whole, and whatever the events say, the answer is put
// together or refused in one line.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/utf8.h"
#include "http/sse_reader.h"
#include "replay/streamed_answer.h"

namespace espalier {
namespace {

constexpr size_t kMaxEventBytes = 4096;

struct ReadStream {
  std::vector<SseEvent> events;
  bool refused = false, done = false, in_event = false;
};

// Pieces of at most `longest` bytes, whose sizes the input decides.
ReadStream read_stream(std::string_view bytes, size_t longest) {
  SseReader reader(kMaxEventBytes);
  ReadStream stream;
  for (size_t at = 0; at < bytes.size() && !stream.refused;) {
    const size_t size = 1 + static_cast<unsigned char>(bytes[at]) * (at + 1) % longest;
    const Result<std::vector<SseEvent>> events = reader.feed(bytes.substr(at, size));
    stream.refused = !events.ok();
    if (events.ok()) stream.events.insert(stream.events.end(), events->begin(), events->end());
    at += size;
  }
  stream.done = reader.done();
  stream.in_event = reader.in_event();
  return stream;
}

void check_same(const ReadStream& a, const ReadStream& b) {
  ESPALIER_CHECK(a.refused == b.refused);
  if (a.refused) return;  // what stood before the refusal in its piece is lost
  ESPALIER_CHECK(a.done == b.done && a.in_event == b.in_event && a.events.size() == b.events.size());
  for (size_t i = 0; i < a.events.size(); ++i) ESPALIER_CHECK(a.events[i].data == b.events[i].data && a.events[i].type == b.events[i].type);
}

void check_answer(const std::vector<SseEvent>& events) {
  StreamedAnswer answer;
  for (const SseEvent& event : events) {
    const Result<std::string> shown = answer.add(event.data);
    if (!shown.ok()) {
      ESPALIER_CHECK(!shown.error().message.empty() && shown.error().message.find('\n') == std::string::npos);
      return;
    }
    ESPALIER_CHECK(is_valid_utf8(*shown));
  }
  const AnswerParts& whole = answer.whole();
  const AnswerParts rest = answer.after_first_chunk();
  ESPALIER_CHECK(answer.begun() == !whole.empty());
  ESPALIER_CHECK(whole.content.ends_with(rest.content) && whole.reasoning.ends_with(rest.reasoning) && rest.calls.size() <= whole.calls.size());
  const size_t kept = rest.content.size() + rest.reasoning.size();
  if (!whole.content.empty() || !whole.reasoning.empty()) ESPALIER_CHECK(kept < whole.content.size() + whole.reasoning.size());
  for (size_t i = 1; i < whole.calls.size(); ++i) ESPALIER_CHECK(whole.calls[i - 1].index < whole.calls[i].index);
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const ReadStream whole = read_stream(input, size + 1);
  for (const size_t longest : {1, 5, 97}) check_same(read_stream(input, longest), whole);
  check_answer(whole.events);
  error_words(input);
  return 0;
}
