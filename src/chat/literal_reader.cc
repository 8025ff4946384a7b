#include "chat/literal_reader.h"

#include <cstdint>

#include "base/json.h"
#include "base/utf8.h"
#include "chat/number_literal.h"
#include "chat/reply_text.h"

namespace espalier {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class LiteralReader {
 public:
  LiteralReader(std::string_view text, LiteralDialect dialect) : text_(text), python_(dialect == LiteralDialect::kPython) {}

  std::optional<std::string> read() {
    if (!value(0)) return std::nullopt;
    skip_blanks();
    if (at_ != text_.size()) return std::nullopt;
    return std::move(out_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void skip_blanks() {
    constexpr std::string_view kJsonBlanks = " \t\r\n";
    at_ = std::min(text_.find_first_not_of(python_ ? kBlanks : kJsonBlanks, at_), text_.size());
  }

  bool value(int depth) {
    if (depth > kMaxLiteralDepth) return false;
    skip_blanks();
    const char c = peek();
    if (c == '{') return object(depth);
    if (c == '[' || (python_ && c == '(')) return list(depth);
    if (at_string()) {
      std::string decoded;
      if (!string(decoded)) return false;
      out_ += json_quoted(decoded);
      return true;
    }
    return is_letter(c) ? word() : number();
  }

  bool object(int depth) {
    ++at_;
    out_ += '{';
    skip_blanks();
    for (bool first = true; !take('}'); first = false) {
      if (!first) {
        if (!take(',')) return false;
        skip_blanks();
        if (python_ && take('}')) break;
        out_ += ',';
      }
      if (!key()) return false;
      skip_blanks();
      if (!take(':')) return false;
      out_ += ':';
      if (!value(depth + 1)) return false;
      skip_blanks();
    }
    out_ += '}';
    return true;
  }

  // Python has keys of other kinds; JSON writes them as strings.
  bool key() {
    if (at_string()) return value(kMaxLiteralDepth);
    if (!python_) return false;
    const size_t begin = out_.size();
    if (!(is_letter(peek()) ? word() : number())) return false;
    out_.insert(begin, 1, '"');
    out_ += '"';
    return true;
  }

  bool list(int depth) {
    const bool tuple = text_[at_++] == '(';
    const char close = tuple ? ')' : ']';
    const size_t begin = out_.size();
    out_ += '[';
    skip_blanks();
    size_t count = 0;
    bool trailing_comma = false;
    while (!take(close)) {
      if (count > 0) {
        if (!take(',')) return false;
        skip_blanks();
        if (python_ && take(close)) {
          trailing_comma = true;
          break;
        }
        out_ += ',';
      }
      if (!value(depth + 1)) return false;
      ++count;
      skip_blanks();
    }
    if (tuple && count == 1 && !trailing_comma) {  // only parentheses
      out_.erase(begin, 1);
      return true;
    }
    out_ += ']';
    return true;
  }

  bool word() {
    const size_t begin = at_;
    while (is_letter(peek())) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    const auto is = [&](std::string_view json, std::string_view python) { return name == json || (python_ && name == python); };
    if (is("true", "True")) {
      out_ += "true";
    } else if (is("false", "False")) {
      out_ += "false";
    } else if (is("null", "None")) {
      out_ += "null";
    } else {
      return false;
    }
    return true;
  }

  bool number() {
    const size_t end = std::min(text_.find_first_not_of("+-._0123456789eE", at_), text_.size());
    const std::string_view literal = text_.substr(at_, end - at_);
    at_ = end;
    if (!python_) {
      if (!is_json_number(literal)) return false;
      out_ += literal;
      return true;
    }
    const std::optional<std::string> json = json_from_python_number(literal);
    if (!json) return false;
    out_ += *json;
    return true;
  }

  bool at_string() const {
    if (peek() == '"') return true;
    if (!python_) return false;
    const bool prefixed = (peek() == 'r' || peek() == 'R' || peek() == 'u' || peek() == 'U') && (peek(1) == '"' || peek(1) == '\'');
    return peek() == '\'' || prefixed;
  }

  bool string(std::string& out) {
    const bool raw = peek() == 'r' || peek() == 'R';
    if (is_letter(peek())) ++at_;
    const char quote = text_[at_++];
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == quote) return true;
      if (c == '\\') {
        if (at_ == text_.size()) return false;
        if (raw) {
          out += c;
          out += text_[at_++];
        } else if (!escape(out)) {
          return false;
        }
        continue;
      }
      if (!python_ && static_cast<uint8_t>(c) < 0x20) return false;
      out += c;
    }
    return false;
  }

  bool escape(std::string& out) {
    const char c = text_[at_++];
    switch (c) {
      case '"':
      case '\\': out += c; return true;
      case 'b': out += '\b'; return true;
      case 'f': out += '\f'; return true;
      case 'n': out += '\n'; return true;
      case 'r': out += '\r'; return true;
      case 't': out += '\t'; return true;
      case 'u': return unicode(out, 4);
      case '/':
        if (!python_) {
          out += c;
          return true;
        }
        break;
      default: break;
    }
    if (!python_) return false;
    switch (c) {
      case '\'': out += c; return true;
      case '\n': return true;
      case 'a': out += '\a'; return true;
      case 'v': out += '\v'; return true;
      case 'x': return unicode(out, 2);
      case 'U': return unicode(out, 8);
      default: break;
    }
    if (c >= '0' && c <= '7') {
      uint32_t octal = static_cast<uint32_t>(c - '0');
      for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i) octal = octal * 8 + static_cast<uint32_t>(text_[at_++] - '0');
      append_utf8(out, octal);
      return true;
    }
    out += '\\';  // no escape in Python: both characters stay
    out += c;
    return true;
  }

  bool hex(int digits, uint32_t& code) {
    code = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = hex_digit(peek());
      if (digit < 0) return false;
      code = code * 16 + static_cast<uint32_t>(digit);
      ++at_;
    }
    return true;
  }

  bool unicode(std::string& out, int digits) {
    uint32_t code = 0;
    if (!hex(digits, code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {  // the first half of a character beyond U+FFFF
      uint32_t low = 0;
      if (!take('\\') || !take('u') || !hex(4, low) || low < 0xDC00 || low > 0xDFFF) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code > 0x10FFFF || (code >= 0xDC00 && code <= 0xDFFF)) return false;
    append_utf8(out, code);
    return true;
  }

  std::string_view text_;
  bool python_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::optional<std::string> json_from_literal(std::string_view text, LiteralDialect dialect) { return LiteralReader(text, dialect).read(); }

std::string json_quoted(std::string_view text) { return dump_json(Json(std::string(text))); }

}  // namespace espalier
