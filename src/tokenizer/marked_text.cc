#include "tokenizer/marked_text.h"

#include <algorithm>

#include "base/result.h"

namespace espalier {
namespace {

// The span that holds the byte at `offset`; end() at or behind the end of the text.
auto span_at(const std::vector<MarkedSpan>& spans, size_t offset) {
  return std::upper_bound(spans.begin(), spans.end(), offset, [](size_t at, const MarkedSpan& span) { return at < span.end; });
}

}  // namespace

void MarkedText::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  text += bytes;
  if (!spans.empty() && spans.back().origin == origin) {
    spans.back().end = text.size();
  } else {
    spans.push_back({text.size(), origin});
  }
}

void MarkedText::append(const MarkedText& other) {
  if (this == &other) return append(MarkedText(other));
  size_t begin = 0;
  for (const MarkedSpan& span : other.spans) {
    append(std::string_view(other.text).substr(begin, span.end - begin), span.origin);
    begin = span.end;
  }
}

Origin MarkedText::origin_at(size_t offset) const {
  ESPALIER_CHECK(offset < text.size());
  return span_at(spans, offset)->origin;
}

MarkedText MarkedText::substr(size_t offset, size_t count) const {
  ESPALIER_CHECK(offset <= text.size());
  const size_t end = offset + std::min(count, text.size() - offset);
  MarkedText part;
  part.text = text.substr(offset, end - offset);
  for (auto span = span_at(spans, offset); span != spans.end() && part.text.size() > (part.spans.empty() ? 0 : part.spans.back().end); ++span) {
    part.spans.push_back({std::min(span->end, end) - offset, span->origin});
  }
  return part;
}

}  // namespace espalier
