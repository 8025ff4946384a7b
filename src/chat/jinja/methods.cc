// Methods of Python's str, dict, list and tuple that templates call.
#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "chat/jinja/evaluation.h"
#include "chat/jinja/formatting.h"
#include "chat/jinja/text_transform.h"
#include "chat/jinja/unicode.h"

namespace espalier::jinja {
namespace {

Text text_argument(const Arguments& arguments, size_t index, std::string_view name) {
  const Value* value = arguments.find(index, name);
  if (value == nullptr) fail("argument '{}' is missing", name);
  if (!value->is_string()) fail("argument '{}' must be str, not {}", name, type_name(*value));
  return value->text();
}

Integer integer_argument(const Arguments& arguments, size_t index, std::string_view name, Integer missing) {
  const Value* value = arguments.find(index, name);
  if (value == nullptr) return missing;
  if (!value->is_integral()) fail("'{}' object cannot be interpreted as an integer", type_name(*value));
  return value->as_integer();
}

Value list_of(Evaluation& evaluation, std::span<const Text> texts, SequenceKind kind = SequenceKind::kList) {
  std::vector<Value> values;
  for (const Text& text : texts) values.push_back(Value::string(text));
  return evaluation.make_list(values, kind);
}

// startswith and endswith: one text or a tuple of them.
template <typename Fits>
Value any_fits(const Arguments& arguments, Fits&& fits) {
  const Value* value = arguments.find(0, "prefix");
  if (value == nullptr) fail("startswith and endswith need an argument");
  if (value->is_string()) return Value::boolean(fits(value->bytes()));
  if (!value->is(Kind::kSequence) || value->sequence_kind() != SequenceKind::kTuple) {
    fail("startswith first arg must be str or a tuple of str, not {}", type_name(*value));
  }
  return Value::boolean(
      std::any_of(value->items().begin(), value->items().end(), [&](const Value& v) { return v.is_string() && fits(v.bytes()); }));
}

template <bool (*kFits)(uint32_t)>
Value all_characters(Evaluation&, const Value& self, const Arguments&) {
  const std::string_view bytes = self.bytes();
  for (size_t i = 0; i < bytes.size();) {
    const CodePoint next = decode_utf8(bytes, i);
    if (!kFits(next.value)) return Value::boolean(false);
    i += next.length;
  }
  return Value::boolean(!bytes.empty());
}
bool is_alphanumeric(uint32_t c) { return is_alpha(c) || is_decimal(c); }

// isupper, islower: at least one letter of the case, none of the other.
template <bool (*kRight)(uint32_t), bool (*kWrong)(uint32_t)>
Value all_cased(Evaluation&, const Value& self, const Arguments&) {
  bool any = false;
  for (size_t i = 0; i < self.bytes().size();) {
    const CodePoint next = decode_utf8(self.bytes(), i);
    if (kWrong(next.value)) return Value::boolean(false);
    any |= kRight(next.value);
    i += next.length;
  }
  return Value::boolean(any);
}

template <Side kSide>
Value strip_method(Evaluation& e, const Value& self, const Arguments& a) {
  const Value* characters = a.find(0, "chars");
  if (characters == nullptr || characters->is(Kind::kNone)) return Value::string(strip(e.arena(), self.text(), kSide));
  return Value::string(strip(e.arena(), self.text(), kSide, text_argument(a, 0, "chars").bytes));
}

template <Text (*kTransform)(Evaluation&, const Text&)>
Value transform(Evaluation& e, const Value& self, const Arguments&) {
  return Value::string(kTransform(e, self.text()));
}

template <Side kFrom>
Value split_method(Evaluation& e, const Value& self, const Arguments& a) {
  const Value* given = a.find(0, "sep");
  const bool spaces = given == nullptr || given->is(Kind::kNone);
  const Text separator = spaces ? Text{} : text_argument(a, 0, "sep");
  return list_of(e, split(e, self.text(), spaces ? nullptr : &separator, integer_argument(a, 1, "maxsplit", -1), kFrom));
}

// Position in characters of the first (last) occurrence, or -1.
template <bool kLast>
Integer find_in(const Value& self, const Arguments& a) {
  const Text wanted = text_argument(a, 0, "sub");
  const size_t at = kLast ? self.bytes().rfind(wanted.bytes) : self.bytes().find(wanted.bytes);
  if (at == std::string_view::npos) return -1;
  return static_cast<Integer>(count_code_points(self.bytes().substr(0, at)));
}

template <bool kLast, bool kMustExist>
Value find_method(Evaluation&, const Value& self, const Arguments& a) {
  const Integer at = find_in<kLast>(self, a);
  if (kMustExist && at < 0) fail("substring not found");
  return Value::integer(at);
}

template <bool kLast>
Value partition(Evaluation& e, const Value& self, const Arguments& a) {
  const Text separator = text_argument(a, 0, "sep");
  if (separator.empty()) fail("empty separator");
  const Text text = self.text();
  const size_t at = kLast ? text.bytes.rfind(separator.bytes) : text.bytes.find(separator.bytes);
  const Text none{};
  if (at == std::string_view::npos) return list_of(e, std::array{kLast ? none : text, none, kLast ? text : none}, SequenceKind::kTuple);
  return list_of(e, std::array{slice(e.arena(), text, 0, at), slice(e.arena(), text, at, at + separator.size()),
                               slice(e.arena(), text, at + separator.size(), text.size())},
                 SequenceKind::kTuple);
}

template <Side kSide>
Value pad_method(Evaluation& e, const Value& self, const Arguments& a) {
  const Value* fill = a.find(1, "fillchar");
  return Value::string(pad(e, self.text(), integer_argument(a, 0, "width", 0), kSide,
                           fill != nullptr ? text_argument(a, 1, "fillchar") : Text{" ", Origin::kTemplate, nullptr}));
}

Value join_method(Evaluation& e, const Value& self, const Arguments& a) {
  const Value* iterable = a.find(0, "iterable");
  if (iterable == nullptr) fail("join() takes exactly one argument (0 given)");
  std::vector<Text> parts;
  for (const Value& item : e.iterate(*iterable)) {
    if (!item.is_string()) fail("sequence item {}: expected str instance, {} found", parts.size(), type_name(item));
    parts.push_back(item.text());
  }
  return Value::string(join(e, self.text(), parts));
}

Value count_method(Evaluation& e, const Value& self, const Arguments& a) {
  const Text wanted = text_argument(a, 0, "sub");
  if (wanted.empty()) return Value::integer(static_cast<Integer>(count_code_points(self.bytes())) + 1);
  Integer count = 0;
  for (size_t at = self.bytes().find(wanted.bytes); at != std::string_view::npos;
       at = self.bytes().find(wanted.bytes, at + wanted.size())) {
    e.step();
    ++count;
  }
  return Value::integer(count);
}

Value zfill(Evaluation& e, const Value& self, const Arguments& a) {
  const Text text = self.text();
  const size_t sign = !text.empty() && (text.bytes[0] == '-' || text.bytes[0] == '+') ? 1 : 0;
  const Text padded = pad(e, slice(e.arena(), text, sign, text.size()), integer_argument(a, 0, "width", 0) - static_cast<Integer>(sign),
                          Side::kLeft, Text{"0", Origin::kTemplate, nullptr});
  return Value::string(concat(e.arena(), slice(e.arena(), text, 0, sign), padded));
}

constexpr std::array kStringMethods = {
    Builtin{"upper", "", transform<upper>},
    Builtin{"lower", "", transform<lower>},
    Builtin{"title", "", transform<title>},
    Builtin{"capitalize", "", transform<capitalize>},
    Builtin{"swapcase", "", transform<swap_case>},
    Builtin{"strip", "chars", strip_method<Side::kBoth>},
    Builtin{"lstrip", "chars", strip_method<Side::kLeft>},
    Builtin{"rstrip", "chars", strip_method<Side::kRight>},
    Builtin{"split", "sep,maxsplit", split_method<Side::kLeft>},
    Builtin{"rsplit", "sep,maxsplit", split_method<Side::kRight>},
    Builtin{"splitlines", "keepends",
            [](Evaluation& e, const Value& self, const Arguments& a) {
              const Value* keep = a.find(0, "keepends");
              return list_of(e, split_lines(e, self.text(), keep != nullptr && is_truthy(*keep)));
            }},
    Builtin{"startswith", "prefix",
            [](Evaluation&, const Value& self, const Arguments& a) {
              return any_fits(a, [&](std::string_view p) { return self.bytes().starts_with(p); });
            }},
    Builtin{"endswith", "prefix",
            [](Evaluation&, const Value& self, const Arguments& a) {
              return any_fits(a, [&](std::string_view p) { return self.bytes().ends_with(p); });
            }},
    Builtin{"removeprefix", "prefix",
            [](Evaluation& e, const Value& self, const Arguments& a) {
              const Text prefix = text_argument(a, 0, "prefix");
              return self.bytes().starts_with(prefix.bytes)
                         ? Value::string(slice(e.arena(), self.text(), prefix.size(), self.bytes().size()))
                         : self;
            }},
    Builtin{"removesuffix", "suffix",
            [](Evaluation& e, const Value& self, const Arguments& a) {
              const Text suffix = text_argument(a, 0, "suffix");
              return self.bytes().ends_with(suffix.bytes)
                         ? Value::string(slice(e.arena(), self.text(), 0, self.bytes().size() - suffix.size()))
                         : self;
            }},
    Builtin{"replace", "old,new,count",
            [](Evaluation& e, const Value& self, const Arguments& a) {
              return Value::string(
                  replace(e, self.text(), text_argument(a, 0, "old"), text_argument(a, 1, "new"), integer_argument(a, 2, "count", -1)));
            }},
    Builtin{"find", "sub", find_method<false, false>},
    Builtin{"rfind", "sub", find_method<true, false>},
    Builtin{"index", "sub", find_method<false, true>},
    Builtin{"rindex", "sub", find_method<true, true>},
    Builtin{"count", "sub", count_method},
    Builtin{"join", "iterable", join_method},
    Builtin{"format", "*",
            [](Evaluation& e, const Value& self, const Arguments& a) { return Value::string(brace_format(e, self.text(), a)); }},
    Builtin{"partition", "sep", partition<false>},
    Builtin{"rpartition", "sep", partition<true>},
    Builtin{"zfill", "width", zfill},
    Builtin{"center", "width,fillchar", pad_method<Side::kBoth>},
    Builtin{"ljust", "width,fillchar", pad_method<Side::kRight>},
    Builtin{"rjust", "width,fillchar", pad_method<Side::kLeft>},
    Builtin{"isdigit", "", all_characters<is_decimal>},
    Builtin{"isdecimal", "", all_characters<is_decimal>},
    Builtin{"isnumeric", "", all_characters<is_decimal>},
    Builtin{"isalpha", "", all_characters<is_alpha>},
    Builtin{"isalnum", "", all_characters<is_alphanumeric>},
    Builtin{"isspace", "", all_characters<is_space>},
    Builtin{"isupper", "", all_cased<is_upper, is_lower>},
    Builtin{"islower", "", all_cased<is_lower, is_upper>},
};

Value dict_view(Evaluation& e, const Value& self, bool keys, bool values) {
  std::vector<Value> items;
  for (const Entry& entry : self.entries()) {
    items.push_back(keys && values ? e.make_list({entry.key, entry.value}, SequenceKind::kTuple) : (keys ? entry.key : entry.value));
  }
  return e.make_list(items, SequenceKind::kView);
}

constexpr std::array kDictMethods = {
    Builtin{"get", "key,default",
            [](Evaluation&, const Value& self, const Arguments& a) {
              const Value* key = a.find(0, "key");
              if (key == nullptr) fail("get expected at least 1 argument, got 0");
              const Value* found = find_key(self.entries(), *key);
              const Value* missing = a.find(1, "default");
              return found != nullptr ? *found : (missing != nullptr ? *missing : Value::none());
            }},
    Builtin{"items", "", [](Evaluation& e, const Value& self, const Arguments&) { return dict_view(e, self, true, true); }},
    Builtin{"keys", "", [](Evaluation& e, const Value& self, const Arguments&) { return dict_view(e, self, true, false); }},
    Builtin{"values", "", [](Evaluation& e, const Value& self, const Arguments&) { return dict_view(e, self, false, true); }},
    Builtin{"copy", "", [](Evaluation&, const Value& self, const Arguments&) { return self; }},
};

constexpr std::array kSequenceMethods = {
    Builtin{"index", "value",
            [](Evaluation&, const Value& self, const Arguments& a) {
              const Value* wanted = a.find(0, "value");
              for (size_t i = 0; wanted != nullptr && i < self.items().size(); ++i) {
                if (equals(self.items()[i], *wanted)) return Value::integer(static_cast<Integer>(i));
              }
              fail("the value is not in the list");
            }},
    Builtin{"count", "value",
            [](Evaluation&, const Value& self, const Arguments& a) {
              const Value* wanted = a.find(0, "value");
              if (wanted == nullptr) fail("count() takes exactly one argument (0 given)");
              return Value::integer(
                  std::count_if(self.items().begin(), self.items().end(), [&](const Value& v) { return equals(v, *wanted); }));
            }},
    Builtin{"copy", "", [](Evaluation&, const Value& self, const Arguments&) { return self; }},
};

template <size_t kCount>
const Builtin* find_in(const std::array<Builtin, kCount>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Builtin& method) { return method.name == name; });
  return found != table.end() ? &*found : nullptr;
}

}  // namespace

const Builtin* find_string_method(std::string_view name) { return find_in(kStringMethods, name); }
const Builtin* find_dict_method(std::string_view name) { return find_in(kDictMethods, name); }
const Builtin* find_sequence_method(std::string_view name) { return find_in(kSequenceMethods, name); }

}  // namespace espalier::jinja
