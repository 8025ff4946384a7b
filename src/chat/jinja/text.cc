#include "chat/jinja/text.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace espalier::jinja {
namespace {

bool is_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// Start of the code point that ends at `end`.
size_t previous_code_point(std::string_view bytes, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && is_continuation(bytes[begin])) --begin;
  return decode_utf8(bytes, begin).length == end - begin ? begin : end - 1;
}

template <typename Removable>
Text strip_if(Arena& arena, const Text& text, Side side, Removable&& removable) {
  size_t begin = 0;
  size_t end = text.size();
  if (side != Side::kRight) {
    while (begin < end) {
      const CodePoint next = decode_utf8(text.bytes, begin);
      if (!removable(next.value)) break;
      begin += next.length;
    }
  }
  if (side != Side::kLeft) {
    while (end > begin) {
      const size_t start = previous_code_point(text.bytes, end);
      if (start < begin || !removable(decode_utf8(text.bytes, start).value)) break;
      end = start;
    }
  }
  return slice(arena, text, begin, end);
}

void push_span(std::vector<MarkedSpan>& spans, size_t end, Origin origin) {
  if (!spans.empty() && spans.back().origin == origin) {
    spans.back().end = end;
  } else {
    spans.push_back({end, origin});
  }
}

Text with_marks(Arena& arena, std::string_view bytes, std::span<const MarkedSpan> spans) {
  if (spans.empty()) return {bytes, Origin::kTemplate, nullptr};
  if (spans.size() == 1) return {bytes, spans.front().origin, nullptr};
  const std::span<MarkedSpan> kept = arena.array<MarkedSpan>(spans.size());
  std::copy(spans.begin(), spans.end(), kept.begin());
  return {bytes, Origin::kTemplate, arena.create(Marks{kept})};
}

}  // namespace

Origin origin_of(const Text& text) {
  if (text.marks == nullptr) return text.origin;
  return Origin::kInput;  // two runs at least, so one of them is input
}

Text slice(Arena& arena, const Text& text, size_t begin, size_t end) {
  if (begin == 0 && end == text.size()) return text;
  const std::string_view bytes = text.bytes.substr(begin, end - begin);
  if (text.marks == nullptr) return {bytes, text.origin, nullptr};
  if (bytes.empty()) return {bytes, Origin::kTemplate, nullptr};
  std::vector<MarkedSpan> spans;
  for (const MarkedSpan& span : text.marks->spans) {
    if (span.end <= begin) continue;
    push_span(spans, std::min(span.end, end) - begin, span.origin);
    if (span.end >= end) break;
  }
  return with_marks(arena, bytes, spans);
}

Text concat(Arena& arena, const Text& a, const Text& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  const std::string_view bytes = arena.join(a.bytes, b.bytes);
  if (a.marks == nullptr && b.marks == nullptr && a.origin == b.origin) return {bytes, a.origin, nullptr};
  const size_t count_a = a.marks == nullptr ? 1 : a.marks->spans.size();
  const size_t count_b = b.marks == nullptr ? 1 : b.marks->spans.size();
  const std::span<MarkedSpan> spans = arena.array<MarkedSpan>(count_a + count_b);
  size_t used = 0;
  size_t end = 0;
  const auto push = [&](std::string_view run, Origin origin) {
    end += run.size();
    if (used != 0 && spans[used - 1].origin == origin) {
      spans[used - 1].end = end;
    } else {
      spans[used++] = {end, origin};
    }
  };
  for_each_run(a, push);
  for_each_run(b, push);
  return {bytes, Origin::kTemplate, arena.create(Marks{spans.first(used)})};
}

bool is_space(uint32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

Text strip(Arena& arena, const Text& text, Side side) { return strip_if(arena, text, side, is_space); }

Text strip(Arena& arena, const Text& text, Side side, std::string_view characters) {
  std::vector<uint32_t> set;
  for (size_t i = 0; i < characters.size();) {
    const CodePoint next = decode_utf8(characters, i);
    set.push_back(next.value);
    i += next.length;
  }
  return strip_if(arena, text, side, [&](uint32_t c) { return std::find(set.begin(), set.end(), c) != set.end(); });
}

size_t count_code_points(std::string_view bytes) {
  const size_t continuations = static_cast<size_t>(std::count_if(bytes.begin(), bytes.end(), is_continuation));
  if (continuations == 0) return bytes.size();
  size_t count = 0;
  for (size_t i = 0; i < bytes.size(); i += decode_utf8(bytes, i).length) ++count;
  return count;
}

std::vector<size_t> code_point_offsets(std::string_view bytes) {
  std::vector<size_t> offsets;
  offsets.reserve(bytes.size() + 1);
  for (size_t i = 0; i < bytes.size(); i += decode_utf8(bytes, i).length) offsets.push_back(i);
  offsets.push_back(bytes.size());
  return offsets;
}

void TextBuilder::flush_first() {
  const Text first = std::exchange(first_, {});
  for_each_run(first, [&](std::string_view run, Origin origin) { append(run, origin); });
}

void TextBuilder::append(const Text& text) {
  if (text.empty()) return;
  if (size() == 0) {
    first_ = text;
    return;
  }
  if (!first_.empty()) flush_first();
  for_each_run(text, [&](std::string_view run, Origin origin) { append(run, origin); });
}

void TextBuilder::append(std::string_view bytes, Origin origin) {
  if (!first_.empty()) flush_first();
  arena_->account(bytes.size());
  built_.append(bytes, origin);
}

Text TextBuilder::finish() {
  if (built_.text.empty()) return first_;
  return with_marks(*arena_, arena_->copy(built_.text), built_.spans);
}

MarkedText TextBuilder::take() {
  if (!first_.empty()) flush_first();
  return std::move(built_);
}

}  // namespace espalier::jinja
