#include "base/utf8.h"

#include <algorithm>

namespace espalier {
namespace {

struct LeadByte {
  uint32_t length;       // 0: never a lead byte
  uint8_t second_low;    // allowed range of the second byte (Unicode 15, table 3-7)
  uint8_t second_high;
};

LeadByte classify(uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

bool continues(uint8_t byte, const LeadByte& lead, uint32_t index) {
  if (index == 1) return byte >= lead.second_low && byte <= lead.second_high;
  return byte >= 0x80 && byte <= 0xBF;
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t offset) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[offset + i]); };
  const LeadByte lead = classify(byte(0));
  if (lead.length == 1) return {byte(0), 1, true};
  if (lead.length == 0) return {0xFFFD, 1, false};
  uint32_t value = byte(0) & (0x7Fu >> lead.length);
  for (uint32_t i = 1; i < lead.length; ++i) {
    if (offset + i >= text.size() || !continues(byte(i), lead, i)) return {0xFFFD, i, false};
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  return {value, lead.length, true};
}

void append_utf8(std::string& out, uint32_t code_point) {
  const auto push = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | (code_point >> 6));
    push(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    push(0xE0 | (code_point >> 12));
    push(0x80 | ((code_point >> 6) & 0x3F));
    push(0x80 | (code_point & 0x3F));
  } else {
    push(0xF0 | (code_point >> 18));
    push(0x80 | ((code_point >> 12) & 0x3F));
    push(0x80 | ((code_point >> 6) & 0x3F));
    push(0x80 | (code_point & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const CodePoint next = decode_utf8(text, i);
    if (!next.valid) return false;
    i += next.length;
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint next = decode_utf8(text, i);
    if (next.valid) {
      out += text.substr(i, next.length);
    } else {
      append_utf8(out, 0xFFFD);
    }
    i += next.length;
  }
  return out;
}

size_t incomplete_utf8_suffix(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const uint8_t byte = static_cast<uint8_t>(text[text.size() - back]);
    if (byte >= 0x80 && byte < 0xC0) continue;
    const LeadByte lead = classify(byte);
    if (lead.length <= back) return 0;
    for (uint32_t i = 1; i < back; ++i) {
      if (!continues(static_cast<uint8_t>(text[text.size() - back + i]), lead, i)) return 0;
    }
    return back;
  }
  return 0;
}

std::string_view utf8_prefix(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  const std::string_view cut = text.substr(0, max_bytes);
  return cut.substr(0, cut.size() - incomplete_utf8_suffix(cut));
}

}  // namespace espalier
