// The functions a template finds without being given them.
#include <array>
#include <ctime>

#include "chat/jinja/evaluation.h"
#include "chat/jinja/printing.h"

namespace espalier::jinja {
namespace {

constexpr size_t kMaxRange = 1 << 20;

Value range(Evaluation& evaluation, const Value&, const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (given.empty()) fail("range expected at least 1 argument, got 0");
  for (const Value& value : given) {
    if (!value.is_integral()) fail("'{}' object cannot be interpreted as an integer", type_name(value));
  }
  const Integer start = given.size() > 1 ? given[0].as_integer() : 0;
  const Integer stop = given.size() > 1 ? given[1].as_integer() : given[0].as_integer();
  const Integer step = given.size() > 2 ? given[2].as_integer() : 1;
  if (step == 0) fail("range() arg 3 must not be zero");
  std::vector<Value> items;
  bool overflow = false;
  for (Integer i = start; !overflow && (step > 0 ? i < stop : i > stop); overflow = __builtin_add_overflow(i, step, &i)) {
    if (items.size() == kMaxRange) throw TemplateError{Failure::kLimit, espalier::format("a range of more than {} numbers", kMaxRange)};
    evaluation.step();
    items.push_back(Value::integer(i));
  }
  return evaluation.make_list(items);
}

Value make_namespace(Evaluation& evaluation, const Value&, const Arguments& arguments) {
  const std::span<Entry> entries = evaluation.arena().array<Entry>(std::max<size_t>(8, 2 * arguments.named.size()));
  NamespaceObject space{entries, 0};
  for (const NamedValue& argument : arguments.named)
    space.entries[space.count++] = {Value::string(argument.name, Origin::kTemplate), argument.value};
  return Value::object(evaluation.arena().create(space));
}

Value make_dict(Evaluation& evaluation, const Value&, const Arguments& arguments) {
  std::vector<Entry> entries;
  for (const Value& value : arguments.positional) {
    if (!value.is(Kind::kDict)) fail("dict() takes a dictionary or names, not '{}'", type_name(value));
    entries.insert(entries.end(), value.entries().begin(), value.entries().end());
  }
  for (const NamedValue& argument : arguments.named) entries.push_back({Value::string(argument.name, Origin::kTemplate), argument.value});
  return evaluation.make_dict(entries);
}

Value cycler(Evaluation& evaluation, const Value&, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  const Value items = evaluation.make_list({arguments.positional.begin(), arguments.positional.end()});
  return Value::object(evaluation.arena().create(CyclerState{items.items(), 0}));
}

Value joiner(Evaluation& evaluation, const Value&, const Arguments& arguments) {
  const Value* separator = arguments.find(0, "sep");
  const Text text = separator != nullptr ? evaluation.printed(*separator) : Text{", ", Origin::kTemplate, nullptr};
  return Value::object(evaluation.arena().create(JoinerState{text, false}));
}

Value raise_exception(Evaluation& evaluation, const Value&, const Arguments& arguments) {
  const Value* message = arguments.find(0, "message");
  throw TemplateError{Failure::kRaised, message != nullptr ? std::string(evaluation.printed(*message).bytes) : "the template refused"};
}

// The C locale's names; local time, as chat templates expect it.
Value strftime_now(Evaluation& evaluation, const Value&, const Arguments& arguments) {
  const Value* pattern = arguments.find(0, "format");
  if (pattern == nullptr || !pattern->is_string()) fail("strftime_now() needs a format");
  const std::time_t now = std::chrono::system_clock::to_time_t(evaluation.now());
  std::tm parts{};
  ::localtime_r(&now, &parts);
  const std::string terminated(pattern->bytes().substr(0, 200));
  char text[1024];
  const size_t length = std::strftime(text, sizeof text, terminated.c_str(), &parts);
  return Value::string(evaluation.arena().copy({text, length}), pattern->origin());
}

constexpr std::array kGlobals = {
    Builtin{"range", "start,stop,step", range},
    Builtin{"namespace", "*", make_namespace},
    Builtin{"dict", "*", make_dict},
    Builtin{"cycler", "*", cycler},
    Builtin{"joiner", "sep", joiner},
    Builtin{"raise_exception", "message", raise_exception},
    Builtin{"strftime_now", "format", strftime_now},
};

}  // namespace

const Builtin* find_global(std::string_view name) {
  for (const Builtin& global : kGlobals) {
    if (global.name == name) return &global;
  }
  return nullptr;
}

}  // namespace espalier::jinja
