#include "tokenizer/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <bitset>
#include <cstring>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/utf8.h"

namespace espalier {
namespace {

constexpr uint32_t kFirstUnstable = 0x300;  // below, everything is NFC in any order
constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
using CodePoints = std::vector<utf8proc_int32_t>;

int combining_class(utf8proc_int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

void append_decomposition(CodePoints& out, uint32_t code_point) {
  utf8proc_int32_t parts[32];  // canonical decompositions have at most 4
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts, std::size(parts), kCompose, nullptr);
  ESPALIER_CHECK(count > 0 && static_cast<size_t>(count) <= std::size(parts));
  out.insert(out.end(), parts, parts + count);
}

// utf8proc sorts marks too, but by insertion: quadratic in the length of a run, which a request chooses.
void sort_marks(CodePoints& points) {
  for (auto begin = points.begin(); begin != points.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, points.end(), [](utf8proc_int32_t point) { return combining_class(point) == 0; });
    std::stable_sort(begin, end, [](utf8proc_int32_t a, utf8proc_int32_t b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

void compose(CodePoints& points) {
  const auto count = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()), kCompose);
  ESPALIER_CHECK(count >= 0);
  points.resize(static_cast<size_t>(count));
}

// Code points that NFC leaves alone and never joins to what stands before them: text may be cut before each of them.
using StableSet = std::bitset<0x110000>;

std::unique_ptr<StableSet> build_stable_set() {
  auto stable = std::make_unique<StableSet>();
  stable->set();
  std::vector<utf8proc_int32_t> joining;  // last parts of what composes
  CodePoints parts;
  for (uint32_t point = kFirstUnstable; point < stable->size(); ++point) {
    const utf8proc_property_t& property = *utf8proc_get_property(static_cast<utf8proc_int32_t>(point));
    if (property.combining_class != 0) stable->reset(point);
    if (property.decomp_seqindex == UINT16_MAX) continue;
    parts.clear();
    append_decomposition(parts, point);
    if (parts.size() == 1 && parts[0] == static_cast<utf8proc_int32_t>(point)) continue;
    const utf8proc_int32_t last = parts.back();
    compose(parts);
    if (parts.size() == 1 && parts[0] == static_cast<utf8proc_int32_t>(point)) {
      joining.push_back(last);
    } else {
      stable->reset(point);
    }
  }
  for (const utf8proc_int32_t point : joining) stable->reset(static_cast<size_t>(point));
  for (size_t vowel = 0x1161; vowel <= 0x1175; ++vowel) stable->reset(vowel);        // Hangul composes by arithmetic
  for (size_t trailing = 0x11A8; trailing <= 0x11C2; ++trailing) stable->reset(trailing);
  return stable;
}

bool is_stable(const CodePoint& point) {
  static const std::unique_ptr<const StableSet> stable = build_stable_set();
  return point.valid && (point.value < kFirstUnstable || stable->test(point.value));
}

size_t skip_ascii(std::string_view text, size_t i) {
  for (uint64_t word; i + sizeof word <= text.size(); i += sizeof word) {
    std::memcpy(&word, text.data() + i, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (i < text.size() && static_cast<signed char>(text[i]) >= 0) ++i;
  return i;
}

struct Segment {
  size_t begin;  // the stable character before the first unstable one, which may compose with it
  size_t end;    // the next stable character, or the end of the text
};

// The next stretch at or after `from`, where a stable character or the text begins, that is not proved to be NFC.
Segment next_unproved(std::string_view text, size_t from) {
  size_t begin = from;
  size_t i = from;
  while (true) {
    const size_t ascii_end = skip_ascii(text, i);
    if (ascii_end > i) begin = ascii_end - 1;
    i = ascii_end;
    if (i == text.size()) return {i, i};
    const CodePoint point = decode_utf8(text, i);
    if (!is_stable(point)) break;
    begin = i;
    i += point.length;
  }
  while (i < text.size()) {
    const CodePoint point = decode_utf8(text, i);
    if (is_stable(point)) break;
    i += point.length;
  }
  return {begin, i};
}

void append_normalized(std::string& out, std::string_view segment, CodePoints& points) {
  points.clear();
  for (size_t i = 0; i < segment.size();) {
    const CodePoint point = decode_utf8(segment, i);
    append_decomposition(points, point.value);
    i += point.length;
  }
  sort_marks(points);
  compose(points);
  for (const utf8proc_int32_t point : points) append_utf8(out, static_cast<uint32_t>(point));
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& storage) {
  Segment segment = next_unproved(text, 0);
  if (segment.begin == text.size()) return text;
  storage.clear();
  storage.reserve(text.size());
  CodePoints points;
  size_t copied = 0;
  while (segment.begin < text.size()) {
    storage += text.substr(copied, segment.begin - copied);
    append_normalized(storage, text.substr(segment.begin, segment.end - segment.begin), points);
    copied = segment.end;
    segment = next_unproved(text, copied);
  }
  storage += text.substr(copied);
  return storage;
}

MarkedText to_nfc(const MarkedText& text) {
  MarkedText normal;
  std::string storage;
  size_t done = 0;
  const auto append_until = [&](size_t end, Origin origin) {
    normal.append(to_nfc(std::string_view(text.text).substr(done, end - done), storage), origin);
    done = end;
  };
  const auto may_cut = [&](size_t at) { return at == text.size() || is_stable(decode_utf8(text.text, at)); };
  for (const MarkedSpan& span : text.spans) {
    if (span.end <= done) continue;
    size_t cut = span.end;
    while (cut > done && !may_cut(cut)) --cut;
    append_until(cut, span.origin);
    if (cut == span.end) continue;
    size_t end = span.end;  // the border lies inside characters that normalise as one
    while (!may_cut(end)) end += decode_utf8(text.text, end).length;
    append_until(end, Origin::kInput);
  }
  return normal;
}

}  // namespace espalier
