#include "chat/jinja/formatting.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "chat/jinja/evaluation.h"
#include "chat/jinja/printing.h"

namespace espalier::jinja {
namespace {

constexpr int kMaxWidth = 10000;

// [flags][width][.precision], shared by both ways.
struct Layout {
  bool left = false, right = false, center = false, zero = false, sign = false;
  int width = 0;
  int precision = -1;
};

int take_number(std::string_view& spec) {
  int value = 0;
  while (!spec.empty() && std::isdigit(static_cast<unsigned char>(spec.front())) != 0) {
    value = std::min(kMaxWidth, value * 10 + (spec.front() - '0'));
    spec.remove_prefix(1);
  }
  return value;
}

void append_padded(Evaluation& evaluation, TextBuilder& out, const Text& text, const Layout& layout, bool number) {
  const size_t length = count_code_points(text.bytes);
  const size_t missing = length < static_cast<size_t>(layout.width) ? static_cast<size_t>(layout.width) - length : 0;
  const Origin origin = origin_of(text);
  if (layout.zero && number) {
    const bool signed_text = !text.empty() && (text.bytes[0] == '-' || text.bytes[0] == '+');
    out.append(text.bytes.substr(0, signed_text ? 1 : 0), origin);
    out.append(std::string(missing, '0'), origin);
    return out.append(slice(evaluation.arena(), text, signed_text ? 1 : 0, text.size()));
  }
  const bool at_right = layout.right || (number && !layout.left && !layout.center);
  const size_t before = layout.center ? missing / 2 : (at_right ? missing : 0);
  out.append(std::string(before, ' '), origin);
  out.append(text);
  out.append(std::string(missing - before, ' '), origin);
}

// One value by its conversion letter: s r d i f e g x X o c %.
void append_converted(Evaluation& evaluation, TextBuilder& out, const Value& value, char conversion, const Layout& layout) {
  if (value.is_undefined() && conversion != 's') fail_undefined(value);
  Arena& arena = evaluation.arena();
  const auto emit = [&](const std::string& digits) {
    append_padded(evaluation, out, Text{arena.copy((layout.sign && digits[0] != '-' ? "+" : "") + digits), value.origin(), nullptr}, layout,
                  true);
  };
  switch (conversion) {
    case 's': {
      Text text = evaluation.printed(value);
      if (layout.precision >= 0) {
        const std::vector<size_t> offsets = code_point_offsets(text.bytes);
        if (static_cast<size_t>(layout.precision) + 1 < offsets.size())
          text = slice(arena, text, 0, offsets[static_cast<size_t>(layout.precision)]);
      }
      return append_padded(evaluation, out, text, layout, false);
    }
    case 'r': {
      TextBuilder built(arena);
      append_repr(built, value);
      return append_padded(evaluation, out, built.finish(), layout, false);
    }
    case 'd':
    case 'i':
      if (value.is_integral()) return emit(integer_text(value.as_integer()));
      if (value.is(Kind::kFloat) && conversion == 'd') return emit(integer_text(static_cast<Integer>(value.as_float())));
      fail("%d format: a real number is required, not {}", type_name(value));
    case 'f':
    case 'e':
    case 'g': {
      if (!value.is_integral() && !value.is(Kind::kFloat)) fail("must be real number, not {}", type_name(value));
      const double number = value.is(Kind::kFloat) ? value.as_float() : static_cast<double>(value.as_integer());
      const int precision = layout.precision < 0 ? 6 : std::min(layout.precision, 100);
      return emit(conversion == 'f' ? espalier::format("{:.{}f}", number, precision)
                                    : (conversion == 'e' ? espalier::format("{:.{}e}", number, precision)
                                                         : espalier::format("{:.{}g}", number, precision)));
    }
    case 'x':
    case 'X':
    case 'o': {
      if (!value.is_integral()) fail("%{} format: an integer is required, not {}", conversion, type_name(value));
      const auto number = static_cast<long long>(value.as_integer());
      return emit(conversion == 'x' ? espalier::format("{:x}", number)
                                    : (conversion == 'X' ? espalier::format("{:X}", number) : espalier::format("{:o}", number)));
    }
    default: fail("unsupported format character '{}'", conversion);
  }
}

}  // namespace

Text percent_format(Evaluation& evaluation, const Text& pattern, const Value& values) {
  TextBuilder out(evaluation.arena());
  const bool tuple = values.is(Kind::kSequence) && values.sequence_kind() == SequenceKind::kTuple;
  size_t used = 0;
  const auto next = [&] {
    if (tuple) {
      if (used == values.items().size()) fail("not enough arguments for format string");
      return values.items()[used++];
    }
    if (used++ != 0) fail("not enough arguments for format string");
    return values;
  };
  size_t plain = 0;
  for (size_t at = pattern.bytes.find('%'); at != std::string_view::npos; at = pattern.bytes.find('%', plain)) {
    evaluation.step();
    out.append(slice(evaluation.arena(), pattern, plain, at));
    std::string_view spec = pattern.bytes.substr(at + 1);
    std::optional<std::string_view> key;
    if (spec.starts_with("(")) {
      const size_t close = spec.find(')');
      if (close == std::string_view::npos) fail("incomplete format key");
      key = spec.substr(1, close - 1);
      spec.remove_prefix(close + 1);
    }
    Layout layout;
    for (; !spec.empty() && std::string_view("-+ 0#").find(spec.front()) != std::string_view::npos; spec.remove_prefix(1)) {
      layout.left |= spec.front() == '-';
      layout.sign |= spec.front() == '+';
      layout.zero |= spec.front() == '0';
    }
    layout.width = take_number(spec);
    if (spec.starts_with(".")) {
      spec.remove_prefix(1);
      layout.precision = take_number(spec);
    }
    if (spec.empty()) fail("incomplete format");
    const char conversion = spec.front();
    plain = pattern.size() - spec.size() + 1;
    if (conversion == '%') {
      out.append("%", pattern.origin);
    } else if (key.has_value()) {
      if (!values.is(Kind::kDict)) fail("format requires a mapping");
      const Value* found = find_key(values.entries(), *key);
      if (found == nullptr) fail("'{}'", *key);
      append_converted(evaluation, out, *found, conversion, layout);
      used = 1;
    } else {
      append_converted(evaluation, out, next(), conversion, layout);
    }
  }
  out.append(slice(evaluation.arena(), pattern, plain, pattern.size()));
  if (tuple && used < values.items().size()) fail("not all arguments converted during string formatting");
  if (!tuple && used == 0 && !values.is(Kind::kDict)) fail("not all arguments converted during string formatting");
  return out.finish();
}

Text brace_format(Evaluation& evaluation, const Text& pattern, const Arguments& arguments) {
  TextBuilder out(evaluation.arena());
  size_t automatic = 0;
  size_t plain = 0;
  const std::string_view bytes = pattern.bytes;
  for (size_t at = bytes.find_first_of("{}"); at != std::string_view::npos; at = bytes.find_first_of("{}", plain)) {
    evaluation.step();
    out.append(slice(evaluation.arena(), pattern, plain, at));
    if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
      out.append(slice(evaluation.arena(), pattern, at, at + 1));
      plain = at + 2;
      continue;
    }
    const size_t close = bytes.find('}', at);
    if (bytes[at] == '}') fail("Single '}}' encountered in format string");
    if (close == std::string_view::npos) fail("Single '{{' encountered in format string");
    std::string_view field = bytes.substr(at + 1, close - at - 1);
    plain = close + 1;
    std::string_view spec;
    if (const size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    if (field.find_first_of(".[!") != std::string_view::npos)
      fail("format fields with attributes, items or conversions are not supported: '{}'", field);
    const Value* value = nullptr;
    if (field.empty() || std::all_of(field.begin(), field.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
      std::string_view digits = field;
      const size_t index = field.empty() ? automatic++ : static_cast<size_t>(take_number(digits));
      if (index >= arguments.positional.size()) fail("Replacement index {} out of range for positional args tuple", index);
      value = &arguments.positional[index];
    } else {
      value = arguments.find(SIZE_MAX, field);
      if (value == nullptr) fail("'{}'", field);
    }
    Layout layout;
    if (!spec.empty() && std::string_view("<>^").find(spec.front()) != std::string_view::npos) {
      layout.left = spec.front() == '<';
      layout.right = spec.front() == '>';
      layout.center = spec.front() == '^';
      spec.remove_prefix(1);
    }
    if (spec.starts_with("+")) {
      layout.sign = true;
      spec.remove_prefix(1);
    }
    if (spec.starts_with("0")) {
      layout.zero = true;
      spec.remove_prefix(1);
    }
    layout.width = take_number(spec);
    if (spec.starts_with(".")) {
      spec.remove_prefix(1);
      layout.precision = take_number(spec);
    }
    if (spec.size() > 1) fail("unsupported format specification '{}'", spec);
    const bool real = value->is(Kind::kFloat) && layout.precision >= 0;
    const char conversion =
        !spec.empty() ? spec.front() : (value->is_integral() && !value->is(Kind::kBool) && layout.width > 0 ? 'd' : (real ? 'g' : 's'));
    append_converted(evaluation, out, *value, conversion, layout);
  }
  out.append(slice(evaluation.arena(), pattern, plain, pattern.size()));
  return out.finish();
}

}  // namespace espalier::jinja
