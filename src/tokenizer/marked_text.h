// Text in which every byte knows where it came from. The chat template's own text may hold control tokens, text from a request never
// does, however it is spelled: the marks travel with the text from the template engine to the tokenizer. Values; no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

enum class Origin : uint8_t {
  kTemplate,  // may become control tokens
  kInput,     // messages, tools, anything a user or a model wrote: ordinary text only
};

struct MarkedSpan {
  size_t end = 0;  // one past its last byte; it begins where the span before it ends
  Origin origin = Origin::kInput;
  bool operator==(const MarkedSpan&) const = default;
};

struct MarkedText {
  std::string text;
  std::vector<MarkedSpan> spans;  // ascending ends, the last one text.size(); neighbours differ in origin; none for empty text

  MarkedText() = default;
  MarkedText(std::string_view bytes, Origin origin) { append(bytes, origin); }

  size_t size() const { return text.size(); }
  bool empty() const { return text.empty(); }
  void append(std::string_view bytes, Origin origin);
  void append(const MarkedText& other);

  // Origin of the byte at `offset` < size(). Logarithmic in the number of spans.
  Origin origin_at(size_t offset) const;
  // At most `count` bytes from `offset` <= size().
  MarkedText substr(size_t offset, size_t count = std::string::npos) const;
  MarkedText prefix(size_t count) const { return substr(0, count); }

  // Same bytes with the same marks.
  bool operator==(const MarkedText&) const = default;
};

}  // namespace espalier
