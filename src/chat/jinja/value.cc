#include "chat/jinja/value.h"

#include <algorithm>
#include <cmath>

namespace espalier::jinja {
namespace {

constexpr int kMaxDepth = 200;
// Lists that share their parts are compared part by part: a small template can ask for more than ever ends.
constexpr size_t kMaxVisits = 1'000'000;

void check_depth(int depth) {
  if (depth > kMaxDepth) throw TemplateError{Failure::kLimit, espalier::format("a value is nested deeper than {} levels", kMaxDepth)};
}

// -1, 0, 1, or 2 when a NaN makes the numbers unordered. Integers beyond 2^53 are compared exactly with each other.
int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) {
    const Integer x = a.as_integer();
    const Integer y = b.as_integer();
    return x < y ? -1 : (x > y ? 1 : 0);
  }
  const auto number = [](const Value& v) { return v.is(Kind::kFloat) ? v.as_float() : static_cast<double>(v.as_integer()); };
  const double x = number(a);
  const double y = number(b);
  if (std::isnan(x) || std::isnan(y)) return 2;
  return x < y ? -1 : (x > y ? 1 : 0);
}

bool equal_within(const Value& a, const Value& b, int depth, size_t& visits) {
  check_depth(depth);
  if (++visits > kMaxVisits) throw TemplateError{Failure::kLimit, espalier::format("a comparison visits more than {} values", kMaxVisits)};
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone: return true;
    case Kind::kString: return a.bytes() == b.bytes();
    case Kind::kSequence: {
      if (a.sequence_kind() != b.sequence_kind() || a.items().size() != b.items().size()) return false;
      for (size_t i = 0; i < a.items().size(); ++i) {
        if (!equal_within(a.items()[i], b.items()[i], depth + 1, visits)) return false;
      }
      return true;
    }
    case Kind::kDict: {
      if (a.entries().size() != b.entries().size()) return false;
      for (const Entry& entry : a.entries()) {
        const Value* other = find_key(b.entries(), entry.key);
        if (other == nullptr || !equal_within(entry.value, *other, depth + 1, visits)) return false;
      }
      return true;
    }
    default: return a.as_namespace() == b.as_namespace();  // objects: identity
  }
}

}  // namespace

Value Value::boolean(bool value, Origin origin) {
  Value result(Kind::kBool, origin);
  result.payload_.boolean = value;
  return result;
}

Value Value::integer(Integer value, Origin origin) {
  Value result(Kind::kInt, origin);
  result.payload_.integer = value;
  return result;
}

Value Value::floating(double value, Origin origin) {
  Value result(Kind::kFloat, origin);
  result.payload_.floating = value;
  return result;
}

Value Value::string(const Text& text) {
  Value result(Kind::kString, text.origin);
  result.marks_ = text.marks;
  result.payload_.range = {text.bytes.data(), text.bytes.size()};
  return result;
}

Value Value::markup(const Text& text) {
  Value result = string(text);
  result.detail_ = 1;
  return result;
}

Value Value::sequence(std::span<const Value> items, SequenceKind kind, Origin origin) {
  Value result(Kind::kSequence, origin);
  result.detail_ = static_cast<uint8_t>(kind);
  result.payload_.items = {items.data(), items.size()};
  return result;
}

Value Value::dict(std::span<const Entry> entries, Origin origin) {
  Value result(Kind::kDict, origin);
  result.payload_.entries = {entries.data(), entries.size()};
  return result;
}

Value Value::undefined(Absence absence, std::string_view name, const char* owner_type) {
  Value result(Kind::kUndefined, Origin::kTemplate);
  result.detail_ = static_cast<uint8_t>(absence);
  result.owner_type_ = owner_type;
  result.payload_.range = {name.data(), name.size()};
  return result;
}

std::span<const Entry> Value::entries() const { return {payload_.entries.data, payload_.entries.size}; }

Origin Value::origin() const { return kind_ == Kind::kString ? origin_of(text()) : origin_; }

const char* type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "NoneType";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kString: return value.is_markup() ? "Markup" : "str";
    case Kind::kSequence:
      switch (value.sequence_kind()) {
        case SequenceKind::kList: return "list";
        case SequenceKind::kTuple: return "tuple";
        case SequenceKind::kView: return "dict_view";
        case SequenceKind::kGenerator: return "generator";
      }
      return "list";
    case Kind::kDict: return "dict";
    case Kind::kNamespace: return "Namespace";
    case Kind::kLoop: return "LoopContext";
    case Kind::kMacro: return "Macro";
    case Kind::kFunction: return "function";
    case Kind::kMethod: return "builtin_function_or_method";
    case Kind::kCycler: return "Cycler";
    case Kind::kJoiner: return "Joiner";
  }
  return "object";
}

const char* type_phrase(const Value& value) {
  switch (value.kind()) {
    case Kind::kNone: return "None";
    case Kind::kBool: return "bool object";
    case Kind::kInt: return "int object";
    case Kind::kFloat: return "float object";
    case Kind::kString: return value.is_markup() ? "markupsafe.Markup object" : "str object";
    case Kind::kSequence:
      return value.sequence_kind() == SequenceKind::kTuple
                 ? "tuple object"
                 : (value.sequence_kind() == SequenceKind::kList ? "list object" : "generator object");
    case Kind::kDict: return "dict object";
    case Kind::kNamespace: return "jinja2.utils.Namespace object";
    case Kind::kLoop: return "jinja2.runtime.LoopContext object";
    case Kind::kMacro: return "jinja2.runtime.Macro object";
    case Kind::kCycler: return "jinja2.utils.Cycler object";
    case Kind::kJoiner: return "jinja2.utils.Joiner object";
    default: return "function object";
  }
}

bool is_truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kBool: return value.as_bool();
    case Kind::kInt: return value.as_integer() != 0;
    case Kind::kFloat: return value.as_float() != 0.0;
    case Kind::kString: return !value.bytes().empty();
    case Kind::kSequence: return value.sequence_kind() == SequenceKind::kGenerator || !value.items().empty();
    case Kind::kDict: return !value.entries().empty();
    default: return true;
  }
}

bool equals(const Value& a, const Value& b, int depth) {
  size_t visits = 0;
  return equal_within(a, b, depth, visits);
}

int compare(const Value& a, const Value& b, std::string_view operation, int depth) {
  check_depth(depth);
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  // UTF-8 keeps the order of code points.
  if (a.is_string() && b.is_string()) return a.bytes().compare(b.bytes()) < 0 ? -1 : (a.bytes() == b.bytes() ? 0 : 1);
  if (a.is(Kind::kSequence) && b.is(Kind::kSequence) && a.sequence_kind() == b.sequence_kind() &&
      a.sequence_kind() <= SequenceKind::kTuple) {
    const size_t shared = std::min(a.items().size(), b.items().size());
    for (size_t i = 0; i < shared; ++i) {
      if (!equals(a.items()[i], b.items()[i], depth + 1)) return compare(a.items()[i], b.items()[i], operation, depth + 1);
    }
    return a.items().size() < b.items().size() ? -1 : (a.items().size() == b.items().size() ? 0 : 1);
  }
  fail("'{}' not supported between instances of '{}' and '{}'", operation, type_name(a), type_name(b));
}

const Value* find_key(std::span<const Entry> entries, std::string_view key) {
  for (const Entry& entry : entries) {
    if (entry.key.is_string() && entry.key.bytes() == key) return &entry.value;
  }
  return nullptr;
}

const Value* find_key(std::span<const Entry> entries, const Value& key) {
  if (key.is_string()) return find_key(entries, key.bytes());
  for (const Entry& entry : entries) {
    if (equals(entry.key, key)) return &entry.value;
  }
  return nullptr;
}

void fail_undefined(const Value& value) {
  const std::string_view name = value.bytes();
  switch (value.absence()) {
    case Absence::kName: fail("'{}' is undefined", name);
    case Absence::kAttribute: fail("'{}' has no attribute '{}'", value.owner_type(), name);
    case Absence::kElement: fail("{} has no element {}", value.owner_type(), name);
    case Absence::kUnsafe: fail("access to attribute '{}' of '{}' object is unsafe.", name, value.owner_type());
    case Absence::kParameter: fail("parameter '{}' was not provided", name);
  }
  fail("an undefined value was used");
}

}  // namespace espalier::jinja
