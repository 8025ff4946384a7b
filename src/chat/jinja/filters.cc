// The filters of "value | name".
#include <algorithm>
#include <array>
#include <cmath>

#include "base/utf8.h"
#include "chat/jinja/evaluation.h"
#include "chat/jinja/formatting.h"
#include "chat/jinja/printing.h"
#include "chat/jinja/text_transform.h"

namespace espalier::jinja {
namespace {

bool flag(const Arguments& arguments, size_t index, std::string_view name, bool missing = false) {
  const Value* value = arguments.find(index, name);
  return value != nullptr ? is_truthy(*value) : missing;
}

Integer number(const Arguments& arguments, size_t index, std::string_view name, Integer missing) {
  const Value* value = arguments.find(index, name);
  if (value == nullptr || value->is(Kind::kNone)) return missing;
  if (!value->is_integral()) fail("'{}' object cannot be interpreted as an integer", type_name(*value));
  return value->as_integer();
}

Text words(Evaluation& e, const Arguments& arguments, size_t index, std::string_view name, std::string_view missing) {
  const Value* value = arguments.find(index, name);
  return value != nullptr ? e.printed(*value) : Text{missing, Origin::kTemplate, nullptr};
}

template <Text (*kTransform)(Evaluation&, const Text&)>
Value transform(Evaluation& e, const Value& subject, const Arguments&) {
  return Value::string(kTransform(e, e.printed(subject)));
}

Value trim(Evaluation& e, const Value& subject, const Arguments& a) {
  const Value* characters = a.find(0, "chars");
  const Text text = e.printed(subject);
  if (characters == nullptr || characters->is(Kind::kNone)) return Value::string(strip(e.arena(), text, Side::kBoth));
  return Value::string(strip(e.arena(), text, Side::kBoth, e.printed(*characters).bytes));
}

Value length(Evaluation&, const Value& subject, const Arguments&) {
  switch (subject.kind()) {
    case Kind::kUndefined: return Value::integer(0);
    case Kind::kString: return Value::integer(static_cast<Integer>(count_code_points(subject.bytes())));
    case Kind::kDict: return Value::integer(static_cast<Integer>(subject.entries().size()));
    case Kind::kSequence:
      if (subject.sequence_kind() != SequenceKind::kGenerator) return Value::integer(static_cast<Integer>(subject.items().size()));
      [[fallthrough]];
    default: fail("object of type '{}' has no len()", type_name(subject));
  }
}

Value default_value(Evaluation&, const Value& subject, const Arguments& a) {
  const bool absent = subject.is_undefined() || (flag(a, 1, "boolean") && !is_truthy(subject));
  if (!absent) return subject;
  const Value* value = a.find(0, "default_value");
  return value != nullptr ? *value : Value::string("", Origin::kTemplate);
}

Value items_of(Evaluation& e, const Value& subject, const Arguments&) {
  if (subject.is_undefined()) return e.make_list({}, SequenceKind::kGenerator);
  if (!subject.is(Kind::kDict)) fail("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  for (const Entry& entry : subject.entries()) pairs.push_back(e.make_list({entry.key, entry.value}, SequenceKind::kTuple));
  return e.make_list(pairs, SequenceKind::kGenerator);
}

Value tojson(Evaluation& e, const Value& subject, const Arguments& a) {
  JsonStyle style;
  style.ascii_only = flag(a, 0, "ensure_ascii");
  style.sort_keys = flag(a, 3, "sort_keys");
  // They are repeated without marks of their own, so they must be the template's.
  for (const auto& [index, name] : {std::pair<size_t, std::string_view>{1, "indent"}, {2, "separators"}}) {
    const Value* value = a.find(index, name);
    if (value == nullptr) continue;
    const std::span<const Value> parts = value->is(Kind::kSequence) ? value->items() : std::span<const Value>(value, 1);
    for (const Value& part : parts) {
      if (part.origin() == Origin::kInput) fail("{} of tojson must be the template's own text", name);
    }
  }
  if (const Value* indent = a.find(1, "indent"); indent != nullptr && !indent->is(Kind::kNone)) {
    style.has_indent = true;
    style.item_separator = ",";
    style.indent = indent->is_string() ? std::string(indent->bytes())
                                       : std::string(static_cast<size_t>(std::clamp<Integer>(number(a, 1, "indent", 0), 0, 64)), ' ');
  }
  if (const Value* separators = a.find(2, "separators"); separators != nullptr && !separators->is(Kind::kNone)) {
    const std::span<const Value> parts = e.iterate(*separators);
    if (parts.size() != 2 || !parts[0].is_string() || !parts[1].is_string()) fail("separators must be two strings");
    style.item_separator = parts[0].bytes();
    style.key_separator = parts[1].bytes();
  }
  TextBuilder out(e.arena());
  append_json(out, subject, style);
  return Value::string(out.finish());
}

// One attribute path ("a.b", "0") of a value, as `attribute=` names it.
Value path_of(Evaluation& e, const Value& value, const Value& path) {
  if (path.is_integral()) return e.element(value, path);
  Value current = value;
  std::string_view rest = path.bytes();
  while (!rest.empty()) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    rest.remove_prefix(std::min(dot + 1, rest.size()));
    const std::optional<Integer> index = parse_integer(part, 10);
    current = e.element(current, index.has_value() ? Value::integer(*index) : Value::string(part, path.origin()));
  }
  return current;
}

Value keyed(Evaluation& e, const Value& value, const Value* attribute) {
  return attribute != nullptr && !attribute->is(Kind::kNone) ? path_of(e, value, *attribute) : value;
}

// Order of sort, unique, min, max: letters without case unless asked otherwise.
Value folded(Evaluation& e, const Value& value, bool case_sensitive) {
  return !case_sensitive && value.is_string() ? Value::string(lower(e, value.text())) : value;
}

Value sort(Evaluation& e, const Value& subject, const Arguments& a) {
  struct Keyed {
    Value key, value;
  };
  std::vector<Keyed> rows;
  for (const Value& value : e.iterate(subject)) {
    e.step();
    rows.push_back({folded(e, keyed(e, value, a.find(2, "attribute")), flag(a, 1, "case_sensitive")), value});
  }
  const bool reverse = flag(a, 0, "reverse");
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Keyed& x, const Keyed& y) { return compare(x.key, y.key, "<") == (reverse ? 1 : -1); });
  std::vector<Value> values;
  for (const Keyed& row : rows) values.push_back(row.value);
  return e.make_list(values);
}

Value dictsort(Evaluation& e, const Value& subject, const Arguments& a) {
  if (!subject.is(Kind::kDict)) fail("dictsort needs a mapping, not '{}'", type_name(subject));
  const bool by_value = words(e, a, 1, "by", "key").bytes == "value";
  const bool case_sensitive = flag(a, 0, "case_sensitive");
  const bool reverse = flag(a, 2, "reverse");
  std::vector<Entry> entries(subject.entries().begin(), subject.entries().end());
  std::stable_sort(entries.begin(), entries.end(), [&](const Entry& x, const Entry& y) {
    const Value p = folded(e, by_value ? x.value : x.key, case_sensitive), q = folded(e, by_value ? y.value : y.key, case_sensitive);
    return compare(p, q, "<") == (reverse ? 1 : -1);
  });
  std::vector<Value> pairs;
  for (const Entry& entry : entries) pairs.push_back(e.make_list({entry.key, entry.value}, SequenceKind::kTuple));
  return e.make_list(pairs);
}

Value unique(Evaluation& e, const Value& subject, const Arguments& a) {
  std::vector<Value> seen, kept;
  for (const Value& value : e.iterate(subject)) {
    const Value key = folded(e, keyed(e, value, a.find(1, "attribute")), flag(a, 0, "case_sensitive"));
    bool known = false;
    for (const Value& other : seen) {
      e.step();
      known = known || equals(other, key);
    }
    if (known) continue;
    seen.push_back(key);
    kept.push_back(value);
  }
  return e.make_list(kept, SequenceKind::kGenerator);
}

template <int kWanted>
Value extreme(Evaluation& e, const Value& subject, const Arguments& a) {
  const std::span<const Value> values = e.iterate(subject);
  if (values.empty()) return Value::undefined(Absence::kName, "No aggregated item, sequence was empty.");
  const auto key = [&](const Value& v) { return folded(e, keyed(e, v, a.find(1, "attribute")), flag(a, 0, "case_sensitive")); };
  const Value* best = &values[0];
  for (const Value& value : values) {
    if (compare(key(value), key(*best), "<") == kWanted) best = &value;
  }
  return *best;
}

Value join_filter(Evaluation& e, const Value& subject, const Arguments& a) {
  std::vector<Text> parts;
  for (const Value& value : e.iterate(subject)) parts.push_back(e.printed(keyed(e, value, a.find(1, "attribute"))));
  return Value::string(join(e, words(e, a, 0, "d", ""), parts));
}

Value first(Evaluation& e, const Value& subject, const Arguments&) {
  const std::span<const Value> values = e.iterate(subject);
  return values.empty() ? Value::undefined(Absence::kName, "No first item, sequence was empty.") : values.front();
}
Value last(Evaluation& e, const Value& subject, const Arguments&) {
  const std::span<const Value> values = e.iterate(subject);
  return values.empty() ? Value::undefined(Absence::kName, "No last item, sequence was empty.") : values.back();
}

Value reverse(Evaluation& e, const Value& subject, const Arguments&) {
  const std::span<const Value> items = e.iterate(subject);
  std::vector<Value> values(items.rbegin(), items.rend());
  if (!subject.is_string()) return e.make_list(values, SequenceKind::kGenerator);
  std::vector<Text> parts;
  for (const Value& value : values) parts.push_back(value.text());
  return Value::string(join(e, {}, parts));
}

Value list(Evaluation& e, const Value& subject, const Arguments&) {
  const std::span<const Value> items = e.iterate(subject);
  return Value::sequence(items, SequenceKind::kList);
}

Value sum(Evaluation& e, const Value& subject, const Arguments& a) {
  const Value* start = a.find(1, "start");
  double real = 0;
  Integer whole = 0;
  bool is_real = false;
  const auto add = [&](const Value& value) {
    if (value.is_integral()) {
      if (__builtin_add_overflow(whole, value.as_integer(), &whole)) throw TemplateError{Failure::kLimit, "an integer exceeds 128 bits"};
    } else if (value.is(Kind::kFloat)) {
      real += value.as_float();
      is_real = true;
    } else {
      fail("unsupported operand type(s) for +: 'int' and '{}'", type_name(value));
    }
  };
  if (start != nullptr) add(*start);
  for (const Value& value : e.iterate(subject)) add(keyed(e, value, a.find(0, "attribute")));
  return is_real ? Value::floating(real + static_cast<double>(whole)) : Value::integer(whole);
}

// map('upper', ...) or map(attribute='n', default=...).
Value map(Evaluation& e, const Value& subject, const Arguments& a) {
  std::vector<Value> mapped;
  const Value* attribute = a.find(SIZE_MAX, "attribute");
  const Builtin* filter = nullptr;
  Arguments rest;
  if (attribute == nullptr) {
    if (a.positional.empty() || !a.positional[0].is_string()) fail("map requires a filter argument");
    filter = find_filter(a.positional[0].bytes());
    if (filter == nullptr) fail("No filter named '{}'.", a.positional[0].bytes());
    rest = {a.positional.subspan(1), a.named};
  }
  const Value* missing = a.find(SIZE_MAX, "default");
  for (const Value& value : e.iterate(subject)) {
    e.step();
    Value result = filter != nullptr ? apply_builtin(e, *filter, value, rest) : path_of(e, value, *attribute);
    if (result.is_undefined() && attribute != nullptr && missing != nullptr) result = *missing;
    mapped.push_back(result);
  }
  return e.make_list(mapped, SequenceKind::kGenerator);
}

// select, reject, selectattr, rejectattr.
template <bool kKeepWhere, bool kByAttribute>
Value pick(Evaluation& e, const Value& subject, const Arguments& a) {
  constexpr size_t kSkipped = kByAttribute ? 1 : 0;
  if (a.positional.size() < kSkipped) fail("Missing parameter for attribute name");
  const Builtin* test = nullptr;
  Arguments rest{{}, a.named};
  if (a.positional.size() > kSkipped) {
    const Value& name = a.positional[kSkipped];
    if (name.is_string()) test = find_test(name.bytes());
    if (test == nullptr) fail("No test named '{}'.", e.printed(name).bytes);
    rest.positional = a.positional.subspan(kSkipped + 1);
  }
  std::vector<Value> kept;
  for (const Value& value : e.iterate(subject)) {
    e.step();
    const Value judged = kByAttribute ? path_of(e, value, a.positional[0]) : value;
    const bool holds = test != nullptr ? is_truthy(apply_builtin(e, *test, judged, rest)) : is_truthy(judged);
    if (holds == kKeepWhere) kept.push_back(value);
  }
  return e.make_list(kept, SequenceKind::kGenerator);
}

Value groupby(Evaluation& e, const Value& subject, const Arguments& a) {
  const Value* attribute = a.find(0, "attribute");
  if (attribute == nullptr) fail("groupby needs an attribute");
  struct Row {
    Value key, value;
  };
  std::vector<Row> rows;
  for (const Value& value : e.iterate(subject)) {
    e.step();
    rows.push_back({path_of(e, value, *attribute), value});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& x, const Row& y) { return compare(folded(e, x.key, false), folded(e, y.key, false), "<") == -1; });
  std::vector<Value> groups;
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin;
    std::vector<Value> members;
    while (end < rows.size() && equals(folded(e, rows[end].key, false), folded(e, rows[begin].key, false)))
      members.push_back(rows[end++].value);
    groups.push_back(e.make_list({rows[begin].key, e.make_list(members)}, SequenceKind::kTuple));
    begin = end;
  }
  return e.make_list(groups);
}

Value batch(Evaluation& e, const Value& subject, const Arguments& a) {
  const Integer size = number(a, 0, "linecount", 0);
  if (size < 1) fail("batch needs a positive count");
  const Value* fill = a.find(1, "fill_with");
  std::vector<Value> rows, row;
  for (const Value& value : e.iterate(subject)) {
    row.push_back(value);
    if (static_cast<Integer>(row.size()) == size) rows.push_back(e.make_list(std::exchange(row, {})));
  }
  if (!row.empty()) {
    while (fill != nullptr && static_cast<Integer>(row.size()) < size) {
      e.step();
      row.push_back(*fill);
    }
    rows.push_back(e.make_list(row));
  }
  return e.make_list(rows, SequenceKind::kGenerator);
}

Value to_int(Evaluation&, const Value& subject, const Arguments& a) {
  const Value fallback = Value::integer(number(a, 0, "default", 0));
  if (subject.is_integral()) return Value::integer(subject.as_integer(), subject.origin());
  const auto truncated = [&](double value) {
    return std::isfinite(value) && std::abs(value) < 0x1p126 ? Value::integer(static_cast<Integer>(value), subject.origin()) : fallback;
  };
  if (subject.is(Kind::kFloat)) return truncated(subject.as_float());
  if (!subject.is_string()) return fallback;
  if (const auto value = parse_integer(subject.bytes(), static_cast<int>(number(a, 1, "base", 10))))
    return Value::integer(*value, subject.origin());
  if (const auto value = parse_float(subject.bytes())) return truncated(*value);
  return fallback;
}

Value to_float(Evaluation&, const Value& subject, const Arguments& a) {
  if (subject.is(Kind::kFloat)) return subject;
  if (subject.is_integral()) return Value::floating(static_cast<double>(subject.as_integer()), subject.origin());
  if (subject.is_string()) {
    if (const auto value = parse_float(subject.bytes())) return Value::floating(*value, subject.origin());
  }
  const Value* fallback = a.find(0, "default");
  return fallback != nullptr ? *fallback : Value::floating(0.0);
}

Value absolute(Evaluation&, const Value& subject, const Arguments&) {
  if (subject.is_integral())
    return Value::integer(subject.as_integer() < 0 ? -subject.as_integer() : subject.as_integer(), subject.origin());
  if (subject.is(Kind::kFloat)) return Value::floating(std::abs(subject.as_float()), subject.origin());
  fail("bad operand type for abs(): '{}'", type_name(subject));
}

Value round(Evaluation& e, const Value& subject, const Arguments& a) {
  if (!subject.is_integral() && !subject.is(Kind::kFloat)) fail("type {} doesn't define __round__ method", type_name(subject));
  const double value = subject.is(Kind::kFloat) ? subject.as_float() : static_cast<double>(subject.as_integer());
  const auto digits = static_cast<int>(std::clamp<Integer>(number(a, 0, "precision", 0), -300, 300));
  const std::string_view method = words(e, a, 1, "method", "common").bytes;
  if (method == "common") {
    if (digits < 0) return Value::floating(std::nearbyint(value / std::pow(10.0, -digits)) * std::pow(10.0, -digits), subject.origin());
    return Value::floating(parse_float(espalier::format("{:.{}f}", value, digits)).value_or(value), subject.origin());
  }
  if (method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  const double scale = std::pow(10.0, digits);
  return Value::floating((method == "ceil" ? std::ceil(value * scale) : std::floor(value * scale)) / scale, subject.origin());
}

std::string_view html_entity(char c) {
  switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '\'': return "&#39;";
    default: return "&#34;";
  }
}

Value escape(Evaluation& e, const Value& subject, const Arguments&) {
  if (subject.is_markup()) return subject;
  TextBuilder out(e.arena());
  for_each_run(e.printed(subject), [&](std::string_view run, Origin origin) {
    for (size_t begin = 0; begin < run.size();) {
      const size_t special = std::min(run.find_first_of("&<>'\"", begin), run.size());
      out.append(run.substr(begin, special - begin), origin);
      if (special < run.size()) out.append(html_entity(run[special]), origin);
      begin = special + 1;
    }
  });
  return Value::markup(out.finish());
}

Value indent(Evaluation& e, const Value& subject, const Arguments& a) {
  const Value* width = a.find(0, "width");
  const Text margin =
      width != nullptr && width->is_string()
          ? width->text()
          : Text{e.arena().copy(std::string(static_cast<size_t>(std::clamp<Integer>(number(a, 0, "width", 4), 0, 1000)), ' ')),
                 Origin::kTemplate, nullptr};
  const bool with_first = flag(a, 1, "first"), with_blank = flag(a, 2, "blank");
  const Text text = e.printed(subject);
  TextBuilder out(e.arena());
  const Text newline{"\n", Origin::kTemplate, nullptr};
  const std::vector<Text> lines = split(e, text, &newline, -1, Side::kLeft);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) out.append(newline);
    if ((i != 0 || with_first) && (with_blank || !lines[i].empty() || (i == 0 && with_first))) out.append(margin);
    out.append(lines[i]);
  }
  return Value::string(out.finish());
}

Value truncate(Evaluation& e, const Value& subject, const Arguments& a) {
  const Text text = e.printed(subject);
  const Integer wanted = number(a, 0, "length", 255), leeway = number(a, 3, "leeway", 5);
  const Text ending = words(e, a, 2, "end", "...");
  const std::vector<size_t> offsets = code_point_offsets(text.bytes);
  const auto size = static_cast<Integer>(offsets.size() - 1);
  if (size <= wanted + leeway) return Value::string(text);
  const Integer keep = std::clamp<Integer>(wanted - static_cast<Integer>(count_code_points(ending.bytes)), 0, size);
  Text head = slice(e.arena(), text, 0, offsets[static_cast<size_t>(keep)]);
  if (!flag(a, 1, "killwords")) {
    if (const size_t space = head.bytes.rfind(' '); space != std::string_view::npos) head = slice(e.arena(), head, 0, space);
  }
  return Value::string(concat(e.arena(), head, ending));
}

Value wordcount(Evaluation& e, const Value& subject, const Arguments&) {
  return Value::integer(static_cast<Integer>(split(e, e.printed(subject), nullptr, -1, Side::kLeft).size()));
}

Value replace_filter(Evaluation& e, const Value& subject, const Arguments& a) {
  return Value::string(replace(e, e.printed(subject), words(e, a, 0, "old", ""), words(e, a, 1, "new", ""), number(a, 2, "count", -1)));
}

Value center(Evaluation& e, const Value& subject, const Arguments& a) {
  return Value::string(pad(e, e.printed(subject), number(a, 0, "width", 80), Side::kBoth, Text{" ", Origin::kTemplate, nullptr}));
}

Value format_filter(Evaluation& e, const Value& subject, const Arguments& a) {
  if (a.named.empty())
    return Value::string(
        percent_format(e, e.printed(subject), e.make_list({a.positional.begin(), a.positional.end()}, SequenceKind::kTuple)));
  std::vector<Entry> entries;
  for (const NamedValue& argument : a.named) entries.push_back({Value::string(argument.name, Origin::kTemplate), argument.value});
  return Value::string(percent_format(e, e.printed(subject), e.make_dict(entries)));
}

constexpr std::array kFilters = {
    Builtin{"abs", "", absolute},
    Builtin{"attr", "name",
            [](Evaluation& e, const Value& v, const Arguments& a) {
              const Value* name = a.find(0, "name");
              if (name == nullptr || !name->is_string()) fail("attr needs a name");
              return e.attribute(v, name->bytes());
            }},
    Builtin{"batch", "linecount,fill_with", batch},
    Builtin{"capitalize", "", transform<capitalize>},
    Builtin{"center", "width", center},
    Builtin{"count", "", length},
    Builtin{"d", "default_value,boolean", default_value},
    Builtin{"default", "default_value,boolean", default_value},
    Builtin{"dictsort", "case_sensitive,by,reverse", dictsort},
    Builtin{"e", "", escape},
    Builtin{"escape", "", escape},
    Builtin{"first", "", first},
    Builtin{"float", "default", to_float},
    Builtin{"format", "*", format_filter},
    Builtin{"groupby", "attribute", groupby},
    Builtin{"indent", "width,first,blank", indent},
    Builtin{"int", "default,base", to_int},
    Builtin{"items", "", items_of},
    Builtin{"join", "d,attribute", join_filter},
    Builtin{"last", "", last},
    Builtin{"length", "", length},
    Builtin{"list", "", list},
    Builtin{"lower", "", transform<lower>},
    Builtin{"map", "*", map},
    Builtin{"max", "case_sensitive,attribute", extreme<1>},
    Builtin{"min", "case_sensitive,attribute", extreme<-1>},
    Builtin{"reject", "*", pick<false, false>},
    Builtin{"rejectattr", "*", pick<false, true>},
    Builtin{"replace", "old,new,count", replace_filter},
    Builtin{"reverse", "", reverse},
    Builtin{"round", "precision,method", round},
    Builtin{"safe", "", [](Evaluation& e, const Value& v, const Arguments&) { return Value::markup(e.printed(v)); }},
    Builtin{"select", "*", pick<true, false>},
    Builtin{"selectattr", "*", pick<true, true>},
    Builtin{"sort", "reverse,case_sensitive,attribute", sort},
    Builtin{"string", "", [](Evaluation& e, const Value& v, const Arguments&) { return Value::string(e.printed(v)); }},
    Builtin{"sum", "attribute,start", sum},
    Builtin{"title", "", transform<title_words>},
    Builtin{"tojson", "ensure_ascii,indent,separators,sort_keys", tojson},
    Builtin{"trim", "chars", trim},
    Builtin{"truncate", "length,killwords,end,leeway", truncate},
    Builtin{"unique", "case_sensitive,attribute", unique},
    Builtin{"upper", "", transform<upper>},
    Builtin{"wordcount", "", wordcount},
};

}  // namespace

const Builtin* find_filter(std::string_view name) {
  const auto found = std::find_if(kFilters.begin(), kFilters.end(), [&](const Builtin& filter) { return filter.name == name; });
  return found != kFilters.end() ? &*found : nullptr;
}

}  // namespace espalier::jinja
