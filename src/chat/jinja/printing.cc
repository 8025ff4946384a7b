#include "chat/jinja/printing.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "chat/jinja/unicode.h"

namespace espalier::jinja {
namespace {

constexpr int kMaxDepth = 200;

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(to_lower(static_cast<uint8_t>(c)));
  return out;
}

std::string_view ascii_stripped(std::string_view text) {
  while (!text.empty() && is_space(static_cast<uint8_t>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && is_space(static_cast<uint8_t>(text.back()))) text.remove_suffix(1);
  return text;
}

// Removes the single underscores that Python allows between digits; nothing if one stands elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || i + 1 == text.size() || text[i - 1] == '_') {
      return std::nullopt;
    }
  }
  return out;
}

void append_string_repr(TextBuilder& out, const Text& text) {
  const bool double_quotes = text.bytes.find('\'') != std::string_view::npos && text.bytes.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  const Origin around = origin_of(text);
  out.append(std::string_view(&quote, 1), around);
  for_each_run(text, [&](std::string_view run, Origin origin) {
    std::string escaped;
    for (size_t i = 0; i < run.size();) {
      const CodePoint next = decode_utf8(run, i);
      const uint32_t c = next.value;
      if (c == static_cast<uint32_t>(quote) || c == '\\') {
        escaped += '\\';
        escaped += static_cast<char>(c);
      } else if (c == '\n' || c == '\r' || c == '\t') {
        escaped += c == '\n' ? "\\n" : (c == '\r' ? "\\r" : "\\t");
      } else if (is_printable(c)) {
        escaped += run.substr(i, next.length);
      } else if (c < 0x100) {
        escaped += espalier::format("\\x{:02x}", c);
      } else if (c < 0x10000) {
        escaped += espalier::format("\\u{:04x}", c);
      } else {
        escaped += espalier::format("\\U{:08x}", c);
      }
      i += next.length;
    }
    out.append(escaped, origin);
  });
  out.append(std::string_view(&quote, 1), around);
}

void append_json_string(TextBuilder& out, const Text& text, bool ascii_only) {
  const Origin around = origin_of(text);
  out.append("\"", around);
  for_each_run(text, [&](std::string_view run, Origin origin) {
    size_t clean_begin = 0;
    const auto flush = [&](size_t end) { out.append(run.substr(clean_begin, end - clean_begin), origin); };
    const auto escape = [&](size_t at, size_t length, std::string_view replacement) {
      flush(at);
      out.append(replacement, origin);
      clean_begin = at + length;
    };
    for (size_t i = 0; i < run.size(); ++i) {
      const uint8_t c = static_cast<uint8_t>(run[i]);
      if (c == '"') {
        escape(i, 1, "\\\"");
      } else if (c == '\\') {
        escape(i, 1, "\\\\");
      } else if (c < 0x20) {
        static constexpr std::string_view kShort[] = {"\\b", "\\t", "\\n", "", "\\f", "\\r"};
        const bool is_short = c >= 8 && c <= 13 && c != 11;
        escape(i, 1, is_short ? std::string(kShort[c - 8]) : espalier::format("\\u{:04x}", c));
      } else if (c >= 0x80 && ascii_only) {
        const CodePoint next = decode_utf8(run, i);
        if (next.value < 0x10000) {
          escape(i, next.length, espalier::format("\\u{:04x}", next.value));
        } else {
          const uint32_t high = 0xD800 + ((next.value - 0x10000) >> 10);
          const uint32_t low = 0xDC00 + ((next.value - 0x10000) & 0x3FF);
          escape(i, next.length, espalier::format("\\u{:04x}\\u{:04x}", high, low));
        }
        i += next.length - 1;
      }
    }
    flush(run.size());
  });
  out.append("\"", around);
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return float_repr(value);
}

void append_json_key(TextBuilder& out, const Value& key, const JsonStyle& style) {
  switch (key.kind()) {
    case Kind::kString: return append_json_string(out, key.text(), style.ascii_only);
    case Kind::kBool: return out.append(key.as_bool() ? "\"true\"" : "\"false\"", key.origin());
    case Kind::kNone: return out.append("\"null\"", key.origin());
    case Kind::kInt: return out.append('"' + integer_text(key.as_integer()) + '"', key.origin());
    case Kind::kFloat: return out.append('"' + json_float(key.as_float()) + '"', key.origin());
    default: fail("keys must be str, int, float, bool or None, not {}", type_name(key));
  }
}

void append_json_line_break(TextBuilder& out, const JsonStyle& style, int depth, Origin origin) {
  if (!style.has_indent) return;
  std::string text = "\n";
  for (int i = 0; i < depth; ++i) text += style.indent;
  out.append(text, origin);
}

void append_json_dict(TextBuilder& out, const Value& value, const JsonStyle& style, int depth) {
  if (value.entries().empty()) return out.append("{}", value.origin());
  std::vector<const Entry*> entries;
  for (const Entry& entry : value.entries()) entries.push_back(&entry);
  if (style.sort_keys) {
    std::stable_sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) { return compare(a->key, b->key, "<") < 0; });
  }
  out.append("{", value.origin());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i != 0) out.append(style.item_separator, value.origin());
    append_json_line_break(out, style, depth + 1, value.origin());
    append_json_key(out, entries[i]->key, style);
    out.append(style.key_separator, value.origin());
    append_json(out, entries[i]->value, style, depth + 1);
  }
  append_json_line_break(out, style, depth, value.origin());
  out.append("}", value.origin());
}

void append_json_list(TextBuilder& out, const Value& value, const JsonStyle& style, int depth) {
  if (value.items().empty()) return out.append("[]", value.origin());
  out.append("[", value.origin());
  for (size_t i = 0; i < value.items().size(); ++i) {
    if (i != 0) out.append(style.item_separator, value.origin());
    append_json_line_break(out, style, depth + 1, value.origin());
    append_json(out, value.items()[i], style, depth + 1);
  }
  append_json_line_break(out, style, depth, value.origin());
  out.append("]", value.origin());
}

void append_sequence_repr(TextBuilder& out, const Value& value, int depth) {
  const bool is_tuple = value.sequence_kind() == SequenceKind::kTuple;
  out.append(is_tuple ? "(" : "[", value.origin());
  for (size_t i = 0; i < value.items().size(); ++i) {
    if (i != 0) out.append(", ", value.origin());
    append_repr(out, value.items()[i], depth + 1);
  }
  if (is_tuple && value.items().size() == 1) out.append(",", value.origin());
  out.append(is_tuple ? ")" : "]", value.origin());
}

void append_dict_repr(TextBuilder& out, std::span<const Entry> entries, Origin origin, int depth) {
  out.append("{", origin);
  bool first = true;
  for (const Entry& entry : entries) {
    if (!first) out.append(", ", origin);
    first = false;
    append_repr(out, entry.key, depth + 1);
    out.append(": ", origin);
    append_repr(out, entry.value, depth + 1);
  }
  out.append("}", origin);
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(result.ptr - buffer));
  std::string out;
  if (text.front() == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  const std::string_view exponent_text = text.substr(e + (text[e + 1] == '+' ? 2 : 1));
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  std::string digits(1, text.front());
  if (e > 2) digits += text.substr(2, e - 2);
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out.append(".").append(digits, 1);
    return out + espalier::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string integer_text(Integer value) {
  char buffer[48];
  char* p = buffer + sizeof buffer;
  __extension__ using Unsigned = unsigned __int128;
  Unsigned rest = value < 0 ? -static_cast<Unsigned>(value) : static_cast<Unsigned>(value);
  do {
    *--p = static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (value < 0) *--p = '-';
  return std::string(p, static_cast<size_t>(buffer + sizeof buffer - p));
}

std::optional<Integer> parse_integer(std::string_view text, int base) {
  text = ascii_stripped(text);
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (text.size() > 2 && text.front() == '0') {
    const char kind = static_cast<char>(text[1] | 32);
    const int prefixed = kind == 'x' ? 16 : (kind == 'o' ? 8 : (kind == 'b' ? 2 : 0));
    if (prefixed != 0 && (base == prefixed || base == 0)) {
      base = prefixed;
      text.remove_prefix(2);
      if (text.front() == '_') text.remove_prefix(1);
    }
  }
  if (base == 0) base = 10;
  const std::optional<std::string> digits = without_underscores(text);
  if (!digits || digits->empty()) return std::nullopt;
  Integer value = 0;
  for (const char c : *digits) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : ((c | 32) >= 'a' && (c | 32) <= 'z' ? (c | 32) - 'a' + 10 : 99);
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, Integer{base}, &value) || __builtin_sub_overflow(value, Integer{digit}, &value)) return std::nullopt;
  }
  if (negative) return value;
  Integer positive = 0;
  if (__builtin_sub_overflow(Integer{0}, value, &positive)) return std::nullopt;
  return positive;
}

std::optional<double> parse_float(std::string_view text) {
  text = ascii_stripped(text);
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  const std::string word = lowered(text);
  if (word == "inf" || word == "infinity") return negative ? -INFINITY : INFINITY;
  if (word == "nan") return static_cast<double>(NAN);
  const std::optional<std::string> plain = without_underscores(text);
  if (!plain || plain->empty() || !((*plain)[0] == '.' || ((*plain)[0] >= '0' && (*plain)[0] <= '9'))) return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(plain->data(), plain->data() + plain->size(), value);
  if (result.ptr != plain->data() + plain->size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range)
    value = plain->find("e-") == std::string::npos && plain->find("E-") == std::string::npos ? INFINITY : 0.0;
  if (result.ec == std::errc::invalid_argument) return std::nullopt;
  return negative ? -value : value;
}

void append_str(TextBuilder& out, const Value& value) {
  if (value.is_string()) return out.append(value.text());
  append_repr(out, value);
}

void append_repr(TextBuilder& out, const Value& value, int depth) {
  if (depth > kMaxDepth) throw TemplateError{Failure::kLimit, espalier::format("a value is nested deeper than {} levels", kMaxDepth)};
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
      if (depth != 0) out.append("Undefined", Origin::kTemplate);
      return;
    case Kind::kNone: return out.append("None", value.origin());
    case Kind::kBool: return out.append(value.as_bool() ? "True" : "False", value.origin());
    case Kind::kInt: return out.append(integer_text(value.as_integer()), value.origin());
    case Kind::kFloat: return out.append(float_repr(value.as_float()), value.origin());
    case Kind::kString: return append_string_repr(out, value.text());
    case Kind::kSequence: return append_sequence_repr(out, value, depth);
    case Kind::kDict: return append_dict_repr(out, value.entries(), value.origin(), depth);
    case Kind::kNamespace: {
      out.append("<Namespace ", Origin::kTemplate);
      const NamespaceObject& object = *value.as_namespace();
      append_dict_repr(out, object.entries.first(object.count), Origin::kTemplate, depth);
      return out.append(">", Origin::kTemplate);
    }
    default: return out.append(espalier::format("<{}>", type_phrase(value)), Origin::kTemplate);
  }
}

Text to_text(Arena& arena, const Value& value) {
  if (value.is_string()) return value.text();
  TextBuilder out(arena);
  append_str(out, value);
  return out.finish();
}

void append_json(TextBuilder& out, const Value& value, const JsonStyle& style, int depth) {
  if (depth > kMaxDepth) throw TemplateError{Failure::kLimit, espalier::format("a value is nested deeper than {} levels", kMaxDepth)};
  switch (value.kind()) {
    case Kind::kNone: return out.append("null", value.origin());
    case Kind::kBool: return out.append(value.as_bool() ? "true" : "false", value.origin());
    case Kind::kInt: return out.append(integer_text(value.as_integer()), value.origin());
    case Kind::kFloat: return out.append(json_float(value.as_float()), value.origin());
    case Kind::kString: return append_json_string(out, value.text(), style.ascii_only);
    case Kind::kDict: return append_json_dict(out, value, style, depth);
    case Kind::kSequence:
      if (value.sequence_kind() <= SequenceKind::kTuple) return append_json_list(out, value, style, depth);
      [[fallthrough]];
    default: fail("Object of type {} is not JSON serializable", type_name(value));
  }
}

}  // namespace espalier::jinja
