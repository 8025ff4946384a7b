#include "chat/jinja/lexer.h"

#include <array>
#include <cstring>

#include "base/utf8.h"
#include "chat/jinja/error.h"
#include "chat/jinja/text.h"

namespace espalier::jinja {
namespace {

constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                                         "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<uint8_t>(c) >= 0x80; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

// "\r\n" and "\r" become "\n"; one trailing newline is dropped.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      out += '\n';
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_newlines(source)) {}

  std::vector<Token> run() {
    while (position_ < source_.size()) read_text_and_tag();
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(position_); }
  bool at(std::string_view what) const { return rest().substr(0, what.size()) == what; }

  void advance(size_t count) {
    for (size_t i = 0; i < count; ++i) line_ += source_[position_ + i] == '\n';
    position_ += count;
  }
  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  [[noreturn]] void syntax_error(std::string message) const { throw TemplateError{Failure::kSyntax, std::move(message), line_}; }

  void skip_space() {
    while (position_ < source_.size()) {
      const CodePoint next = decode_utf8(source_, position_);
      if (!is_space(next.value)) return;
      advance(next.length);
    }
  }

  static std::string_view right_stripped(std::string_view text) {
    Arena unused(0);
    return strip(unused, Text{text, Origin::kTemplate, nullptr}, Side::kRight).bytes;
  }

  // Text before a tag after whitespace control: `sign` is the character behind the tag's opener.
  std::string_view trim_before_tag(std::string_view text, char sign, bool is_print) const {
    if (sign == '-') return right_stripped(text);
    if (sign == '+' || is_print) return text;
    const size_t newline = text.rfind('\n');
    const size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (line_begin == 0 && !line_starting_) return text;
    const bool blank = right_stripped(text).size() <= line_begin;
    return blank ? text.substr(0, line_begin) : text;
  }

  // Behind the closer of a block or comment: "-" eats all whitespace, otherwise one newline goes (trim_blocks) unless "+" was written.
  void finish_tag(std::string_view closer, char sign, bool trim_newline) {
    const size_t begin = position_;
    advance((sign == '\0' ? 0 : 1) + closer.size());
    if (sign == '-') skip_space();
    if (sign == '\0' && trim_newline && at("\n")) advance(1);
    line_starting_ = position_ > begin && source_[position_ - 1] == '\n';
  }

  void read_text_and_tag() {
    size_t tag = position_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= source_.size()) {
        push_text(rest());
        position_ = source_.size();
        return;
      }
      const char second = source_[tag + 1];
      if (second == '{' || second == '%' || second == '#') break;
    }
    const char opener = source_[tag + 1];
    const char following = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const char sign = following == '-' || following == '+' ? following : '\0';
    const std::string_view before = std::string_view(source_).substr(position_, tag - position_);
    push_text(trim_before_tag(before, sign, opener == '{'));
    advance(before.size() + 2 + (sign == '\0' ? 0 : 1));
    if (opener == '#') return read_comment();
    if (opener == '%' && read_raw()) return;
    read_tag(opener == '{');
  }

  void push_text(std::string_view text) {
    if (!text.empty()) push(TokenKind::kText, std::string(text));
  }

  void read_comment() {
    const size_t end = source_.find("#}", position_);
    if (end == std::string::npos) syntax_error("Missing end of comment tag");
    const char last = end > position_ ? source_[end - 1] : '\0';
    const char sign = last == '-' || last == '+' ? last : '\0';
    advance(end - position_ - (sign == '\0' ? 0 : 1));
    finish_tag("#}", sign, true);
  }

  // {% raw %} ... {% endraw %}: one text token. False if the tag at hand is another one.
  bool read_raw() {
    size_t p = position_;
    const auto skip_blank = [&] {
      while (p < source_.size() && is_space(static_cast<uint8_t>(source_[p])) && static_cast<uint8_t>(source_[p]) < 0x80) ++p;
    };
    skip_blank();
    if (source_.compare(p, 3, "raw") != 0) return false;
    p += 3;
    skip_blank();
    const bool strip_after = source_.compare(p, 3, "-%}") == 0;
    if (!strip_after && source_.compare(p, 2, "%}") != 0) return false;
    advance(p - position_);
    finish_tag("%}", strip_after ? '-' : '\0', false);

    for (size_t tag = position_;; ++tag) {
      tag = source_.find("{%", tag);
      if (tag == std::string::npos) syntax_error("Missing end of raw directive");
      p = tag + 2;
      const char sign = p < source_.size() && (source_[p] == '-' || source_[p] == '+') ? source_[p] : '\0';
      if (sign != '\0') ++p;
      skip_blank();
      if (source_.compare(p, 6, "endraw") != 0) continue;
      p += 6;
      skip_blank();
      const char last = p < source_.size() && (source_[p] == '-' || source_[p] == '+') ? source_[p] : '\0';
      if (source_.compare(p + (last == '\0' ? 0 : 1), 2, "%}") != 0) continue;
      push_text(trim_before_tag(std::string_view(source_).substr(position_, tag - position_), sign, false));
      advance(p - position_);
      finish_tag("%}", last, true);
      return true;
    }
  }

  void read_tag(bool is_print) {
    push(is_print ? TokenKind::kPrintBegin : TokenKind::kBlockBegin, "");
    const std::string_view closer = is_print ? "}}" : "%}";
    brackets_.clear();
    for (;;) {
      skip_space();
      if (position_ >= source_.size()) {
        // Jinja reports the missing end where its parser runs out of tokens.
        return;
      }
      if (brackets_.empty()) {
        const char sign = at("-") ? '-' : (at("+") && !is_print ? '+' : '\0');
        if (rest().substr(sign == '\0' ? 0 : 1, closer.size()) == closer) {
          push(is_print ? TokenKind::kPrintEnd : TokenKind::kBlockEnd, "");
          finish_tag(closer, sign, !is_print);
          return;
        }
      }
      read_token();
    }
  }

  void read_token() {
    const char c = source_[position_];
    if (is_digit(c)) return read_number();
    if (c == '\'' || c == '"') return read_string(c);
    if (is_name_start(c)) {
      size_t end = position_;
      while (end < source_.size() && is_name_part(source_[end])) ++end;
      push(TokenKind::kName, source_.substr(position_, end - position_));
      return advance(end - position_);
    }
    for (const std::string_view op : kOperators) {
      if (!at(op)) continue;
      track_brackets(op);
      push(TokenKind::kOperator, std::string(op));
      return advance(op.size());
    }
    syntax_error(
        espalier::format("unexpected character {} at {}", c >= 0x20 && c < 0x7F ? std::string("'") + c + "'" : "outside ASCII", position_));
  }

  void track_brackets(std::string_view op) {
    const char c = op.front();
    if (op.size() == 1 && std::strchr("([{", c) != nullptr) brackets_.push_back(c == '(' ? ')' : (c == '[' ? ']' : '}'));
    if (op.size() != 1 || std::strchr(")]}", c) == nullptr) return;
    if (brackets_.empty()) syntax_error(espalier::format("unexpected '{}'", c));
    if (brackets_.back() != c) syntax_error(espalier::format("unexpected '{}', expected '{}'", c, brackets_.back()));
    brackets_.pop_back();
  }

  // Digits with single underscores between them, from `begin`; the end of the run.
  size_t digits_end(size_t begin) const {
    size_t p = begin;
    while (p < source_.size() &&
           (is_digit(source_[p]) || (source_[p] == '_' && p > begin && p + 1 < source_.size() && is_digit(source_[p + 1]))))
      ++p;
    return p;
  }

  void read_number() {
    const auto take = [&](TokenKind kind, size_t end) {
      std::string text;
      for (size_t i = position_; i < end; ++i) {
        if (source_[i] != '_') text += source_[i];
      }
      push(kind, std::move(text));
      advance(end - position_);
    };
    if (source_[position_] == '0' && position_ + 2 < source_.size() && std::strchr("xXoObB", source_[position_ + 1]) != nullptr) {
      size_t p = position_ + 2;
      while (p < source_.size() && (is_digit(source_[p]) || source_[p] == '_' || std::strchr("abcdefABCDEF", source_[p]) != nullptr)) ++p;
      return take(TokenKind::kInteger, p);
    }
    size_t p = digits_end(position_);
    bool is_float = false;
    if (p + 1 < source_.size() && source_[p] == '.' && is_digit(source_[p + 1])) {
      p = digits_end(p + 1);
      is_float = true;
    }
    if (p < source_.size() && (source_[p] == 'e' || source_[p] == 'E')) {
      size_t exponent = p + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
      if (exponent < source_.size() && is_digit(source_[exponent])) {
        p = digits_end(exponent);
        is_float = true;
      }
    }
    take(is_float ? TokenKind::kFloat : TokenKind::kInteger, p);
  }

  void read_string(char quote) {
    size_t end = position_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) syntax_error("a string literal is not closed");
    push(TokenKind::kString, unescape(std::string_view(source_).substr(position_ + 1, end - position_ - 1)));
    advance(end + 1 - position_);
  }

  // Python's escapes of a str literal; unknown ones keep their backslash.
  std::string unescape(std::string_view text) const {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\' || i + 1 >= text.size()) {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      static constexpr std::string_view kNames = "\\'\"abfnrtv";
      static constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
      if (const size_t simple = kNames.find(c); simple != std::string_view::npos) {
        out += kValues[simple];
      } else if (c == '\n') {
        continue;
      } else if (c >= '0' && c <= '7') {
        uint32_t value = 0;
        size_t digits = 0;
        while (digits < 3 && i + digits < text.size() && text[i + digits] >= '0' && text[i + digits] <= '7') {
          value = value * 8 + static_cast<uint32_t>(text[i + digits++] - '0');
        }
        i += digits - 1;
        append_utf8(out, value);
      } else if (c == 'x' || c == 'u' || c == 'U') {
        i = append_hex_escape(out, text, i + 1, c == 'x' ? 2 : (c == 'u' ? 4 : 8)) - 1;
      } else if (c == 'N') {
        throw TemplateError{Failure::kUnsupported, "character names in string literals (\\N{...}) are not supported", line_};
      } else {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  size_t append_hex_escape(std::string& out, std::string_view text, size_t begin, size_t digits) const {
    uint32_t value = 0;
    for (size_t i = begin; i < begin + digits; ++i) {
      const char c = i < text.size() ? text[i] : '\0';
      const uint32_t digit = is_digit(c) ? static_cast<uint32_t>(c - '0')
                                         : ((c | 32) >= 'a' && (c | 32) <= 'f' ? static_cast<uint32_t>((c | 32) - 'a' + 10) : 16);
      if (digit == 16) syntax_error("truncated hexadecimal escape in a string literal");
      value = value * 16 + digit;
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) syntax_error("a string literal escapes a value that is not a character");
    append_utf8(out, value);
    return begin + digits;
  }

  std::string source_;
  size_t position_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;  // nothing but tags since the last newline
  std::vector<char> brackets_;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize_template(std::string_view source) { return Lexer(source).run(); }

}  // namespace espalier::jinja
