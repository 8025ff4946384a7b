// The tests of "value is name".
#include <algorithm>
#include <array>
#include <cmath>

#include "chat/jinja/evaluation.h"
#include "chat/jinja/unicode.h"
#include "base/utf8.h"

namespace espalier::jinja {
namespace {

Value truth(bool value) { return Value::boolean(value); }

const Value& required(const Arguments& arguments, std::string_view test) {
  if (arguments.positional.empty()) fail("the test '{}' needs an argument", test);
  return arguments.positional[0];
}

Integer integer_of(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (!value.is_integral()) fail("not an integer: '{}'", type_name(value));
  return value.as_integer();
}

template <typename Cased>
bool all_cased(const Value& value, Cased&& right, bool (*wrong)(uint32_t)) {
  if (!value.is_string()) return false;
  bool any = false;
  for (size_t i = 0; i < value.bytes().size();) {
    const CodePoint next = decode_utf8(value.bytes(), i);
    if (wrong(next.value)) return false;
    any |= right(next.value);
    i += next.length;
  }
  return any;
}

bool is_iterable(const Value& v) { return v.is_string() || v.is(Kind::kSequence) || v.is(Kind::kDict) || v.is_undefined(); }

constexpr std::array kTests = {
    Builtin{"defined", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(!v.is_undefined()); }},
    Builtin{"undefined", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is_undefined()); }},
    Builtin{"none", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is(Kind::kNone)); }},
    Builtin{"string", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is_string()); }},
    Builtin{"number", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is_number()); }},
    Builtin{"integer", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is(Kind::kInt)); }},
    Builtin{"float", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is(Kind::kFloat)); }},
    Builtin{"boolean", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is(Kind::kBool)); }},
    Builtin{"true", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is(Kind::kBool) && v.as_bool()); }},
    Builtin{"false", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is(Kind::kBool) && !v.as_bool()); }},
    Builtin{"mapping", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is(Kind::kDict)); }},
    Builtin{"sequence", "",
            [](Evaluation&, const Value& v, const Arguments&) {
              return truth(v.is_string() || v.is(Kind::kDict) || (v.is(Kind::kSequence) && v.sequence_kind() <= SequenceKind::kTuple));
            }},
    Builtin{"iterable", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(is_iterable(v)); }},
    Builtin{"callable", "",
            [](Evaluation&, const Value& v, const Arguments&) {
              return truth(v.is(Kind::kMacro) || v.is(Kind::kFunction) || v.is(Kind::kMethod) || v.is(Kind::kCycler) ||
                           v.is(Kind::kJoiner));
            }},
    Builtin{"odd", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(integer_of(v) % 2 != 0); }},
    Builtin{"even", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(integer_of(v) % 2 == 0); }},
    Builtin{"divisibleby", "num",
            [](Evaluation&, const Value& v, const Arguments& a) {
              const Integer divisor = integer_of(required(a, "divisibleby"));
              if (divisor == 0) fail("integer division or modulo by zero");
              return truth(integer_of(v) % divisor == 0);
            }},
    Builtin{"in", "seq", [](Evaluation& e, const Value& v, const Arguments& a) { return truth(e.contains(required(a, "in"), v)); }},
    Builtin{"lower", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(all_cased(v, is_lower, is_upper)); }},
    Builtin{"upper", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(all_cased(v, is_upper, is_lower)); }},
    Builtin{"escaped", "", [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is_markup()); }},
    Builtin{"sameas", "other",
            [](Evaluation&, const Value& v,
               const Arguments& a) { return truth(v.kind() == required(a, "sameas").kind() && equals(v, a.positional[0])); }},
    Builtin{"filter", "",
            [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is_string() && find_filter(v.bytes()) != nullptr); }},
    Builtin{"test", "",
            [](Evaluation&, const Value& v, const Arguments&) { return truth(v.is_string() && find_test(v.bytes()) != nullptr); }},
};

template <int kWanted, bool kOrEqual>
Value ordered(Evaluation&, const Value& v, const Arguments& a) {
  const int order = compare(v, required(a, "comparison"), kWanted < 0 ? "<" : ">");
  return truth(order == kWanted || (kOrEqual && order == 0));
}
Value equal(Evaluation&, const Value& v, const Arguments& a) { return truth(equals(v, required(a, "eq"))); }
Value unequal(Evaluation&, const Value& v, const Arguments& a) { return truth(!equals(v, required(a, "ne"))); }

constexpr std::array kComparisons = {
    Builtin{"eq", "other", equal},
    Builtin{"equalto", "other", equal},
    Builtin{"==", "other", equal},
    Builtin{"ne", "other", unequal},
    Builtin{"!=", "other", unequal},
    Builtin{"lt", "other", ordered<-1, false>},
    Builtin{"lessthan", "other", ordered<-1, false>},
    Builtin{"<", "other", ordered<-1, false>},
    Builtin{"le", "other", ordered<-1, true>},
    Builtin{"<=", "other", ordered<-1, true>},
    Builtin{"gt", "other", ordered<1, false>},
    Builtin{"greaterthan", "other", ordered<1, false>},
    Builtin{">", "other", ordered<1, false>},
    Builtin{"ge", "other", ordered<1, true>},
    Builtin{">=", "other", ordered<1, true>},
};

}  // namespace

const Builtin* find_test(std::string_view name) {
  for (const Builtin& test : kTests) {
    if (test.name == name) return &test;
  }
  for (const Builtin& test : kComparisons) {
    if (test.name == name) return &test;
  }
  return nullptr;
}

}  // namespace espalier::jinja
