// A string of the template language: bytes plus, for each of them, where it came from (the template or the request). Borrowed: the
// bytes belong to the template, the request or the arena of the rendering. Positions visible to templates count code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/arena.h"
#include "tokenizer/marked_text.h"

namespace espalier::jinja {

// Spans of one text, ends ascending, the last end = size of the text.
struct Marks {
  std::span<const MarkedSpan> spans;
};

struct Text {
  std::string_view bytes;
  Origin origin = Origin::kTemplate;  // of every byte while `marks` is null
  const Marks* marks = nullptr;

  size_t size() const { return bytes.size(); }
  bool empty() const { return bytes.empty(); }
};

// kInput if any byte of the text is: the origin of what is derived from it as a whole.
Origin origin_of(const Text& text);
inline Origin either(Origin a, Origin b) { return a == Origin::kInput ? a : b; }

// Calls visit(std::string_view bytes, Origin) for each run of one origin, in order.
template <typename Visit>
void for_each_run(const Text& text, Visit&& visit) {
  if (text.marks == nullptr) {
    if (!text.empty()) visit(text.bytes, text.origin);
    return;
  }
  size_t begin = 0;
  for (const MarkedSpan& span : text.marks->spans) {
    visit(text.bytes.substr(begin, span.end - begin), span.origin);
    begin = span.end;
  }
}

// Bytes [begin, end) of a text, sharing its memory.
Text slice(Arena& arena, const Text& text, size_t begin, size_t end);
Text concat(Arena& arena, const Text& a, const Text& b);

// Python's str.isspace set: also U+001C..U+001F, U+0085, U+00A0 and U+3000, but not U+200B or U+FEFF.
bool is_space(uint32_t code_point);
enum class Side : uint8_t { kBoth, kLeft, kRight };
Text strip(Arena& arena, const Text& text, Side side);
// Removes code points that occur in `characters`.
Text strip(Arena& arena, const Text& text, Side side, std::string_view characters);

size_t count_code_points(std::string_view bytes);
// Byte offset of every code point, plus the size: offsets[i] .. offsets[i + 1] is character i.
std::vector<size_t> code_point_offsets(std::string_view bytes);

// Collects pieces in order.
class TextBuilder {
 public:
  explicit TextBuilder(Arena& arena) : arena_(&arena) {}

  // `text` must outlive the rendering: the first piece is only remembered, so a macro that prints one string costs no copy.
  void append(const Text& text);
  // Copies the bytes.
  void append(std::string_view bytes, Origin origin);
  size_t size() const { return built_.text.size() + first_.size(); }
  // The whole text, in arena memory.
  Text finish();
  // The whole text, moved out.
  MarkedText take();

 private:
  void flush_first();

  Arena* arena_;
  Text first_;
  MarkedText built_;
};

}  // namespace espalier::jinja
