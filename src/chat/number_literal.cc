#include "chat/number_literal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "chat/reply_text.h"

namespace espalier {
namespace {

constexpr size_t kMaxBytes = 1000;  // longer ones are text
constexpr int64_t kMaxExponent = 100000;

struct Decimal {
  bool negative = false;
  std::string whole;     // digits before the point
  std::string fraction;  // digits behind it
  bool has_point = false;
  std::string exponent;  // with its sign, if it has one; empty: none
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class DecimalReader {
 public:
  explicit DecimalReader(std::string_view text) : text_(text) {}

  std::optional<Decimal> read() {
    if (text_.size() > kMaxBytes) return std::nullopt;
    Decimal number;
    if (peek() == '+' || peek() == '-') number.negative = text_[at_++] == '-';
    if (!digits(number.whole)) return std::nullopt;
    if (peek() == '.') {
      ++at_;
      number.has_point = true;
      if (!digits(number.fraction)) return std::nullopt;
    }
    if (number.whole.empty() && number.fraction.empty()) return std::nullopt;
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') number.exponent += text_[at_++];
      std::string power;
      if (!digits(power) || power.empty()) return std::nullopt;
      number.exponent += power;
    }
    if (at_ != text_.size()) return std::nullopt;
    return number;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // Single underscores may stand between digits.
  bool digits(std::string& out) {
    while (is_digit(peek()) || peek() == '_') {
      if (peek() == '_') {
        if (out.empty() || text_[at_ - 1] == '_') return false;
      } else {
        out += peek();
      }
      ++at_;
    }
    return out.empty() || text_[at_ - 1] != '_';
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::string without_leading_zeros(std::string_view digits) {
  const size_t first = digits.find_first_not_of('0');
  return first == std::string_view::npos ? "0" : std::string(digits.substr(first));
}

std::string json_text(const Decimal& number) {
  std::string out = number.negative ? "-" : "";
  out += without_leading_zeros(number.whole);
  if (number.has_point) out += "." + (number.fraction.empty() ? "0" : number.fraction);
  if (!number.exponent.empty()) out += "e" + number.exponent;
  return out;
}

std::optional<std::string> if_finite(std::string text) {
  if (!std::isfinite(std::strtod(text.c_str(), nullptr))) return std::nullopt;
  return text;
}

std::string integer_text(const Decimal& number, std::string_view digits) {
  std::string out = without_leading_zeros(digits);
  return number.negative && out != "0" ? "-" + out : out;
}

// All digits of a value without a fractional part; empty if it has one.
std::optional<std::string> integral_digits(const Decimal& number) {
  std::string digits = number.whole + number.fraction;
  if (digits.find_first_not_of('0') == std::string::npos) return "0";
  int64_t exponent = 0;
  if (!number.exponent.empty()) {
    const std::string_view power = std::string_view(number.exponent).substr(number.exponent.front() == '+' ? 1 : 0);
    if (std::from_chars(power.data(), power.data() + power.size(), exponent).ec != std::errc()) return std::nullopt;
  }
  if (std::abs(exponent) > kMaxExponent) return std::nullopt;
  const int64_t shift = exponent - static_cast<int64_t>(number.fraction.size());
  if (shift >= 0) return digits + std::string(static_cast<size_t>(shift), '0');
  const size_t dropped = std::min(digits.size(), static_cast<size_t>(-shift));
  const std::string_view tail = std::string_view(digits).substr(digits.size() - dropped);
  if (tail.find_first_not_of('0') != std::string_view::npos) return std::nullopt;
  return digits.substr(0, digits.size() - dropped);
}

}  // namespace

bool is_json_number(std::string_view text) {
  size_t at = 0;
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  const auto digits = [&] {
    const size_t begin = at;
    while (is_digit(peek())) ++at;
    return at - begin;
  };
  if (peek() == '-') ++at;
  const bool starts_with_zero = peek() == '0';
  const size_t whole = digits();
  if (whole == 0 || (starts_with_zero && whole > 1)) return false;
  if (peek() == '.') {
    ++at;
    if (digits() == 0) return false;
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at;
    if (peek() == '+' || peek() == '-') ++at;
    if (digits() == 0) return false;
  }
  return at == text.size() && text.size() <= kMaxBytes && if_finite(std::string(text)).has_value();
}

std::optional<std::string> json_integer(std::string_view text) {
  const std::optional<Decimal> number = DecimalReader(trim_blanks(text)).read();
  if (!number || number->has_point || !number->exponent.empty()) return std::nullopt;
  return if_finite(integer_text(*number, number->whole));
}

std::optional<std::string> json_number(std::string_view text) {
  const std::optional<Decimal> number = DecimalReader(trim_blanks(text)).read();
  if (!number) return std::nullopt;
  std::optional<std::string> literal = if_finite(is_json_number(trim_blanks(text)) ? std::string(trim_blanks(text)) : json_text(*number));
  if (!literal) return std::nullopt;
  if (const std::optional<std::string> digits = integral_digits(*number)) return integer_text(*number, *digits);
  return literal;
}

std::optional<std::string> json_from_python_number(std::string_view text) {
  if (is_json_number(text)) return std::string(text);
  const std::optional<Decimal> number = DecimalReader(text).read();
  if (!number) return std::nullopt;
  const bool is_integer = !number->has_point && number->exponent.empty();
  if (is_integer && number->whole.size() > 1 && number->whole.front() == '0') return std::nullopt;
  return if_finite(json_text(*number));
}

}  // namespace espalier
