// Filters, tests, methods and globals: one table entry each, found by name when a template is parsed. `parameters` lists the names that
// the callee accepts in order ("a,b"); "*" accepts anything.
#pragma once

#include <span>
#include <string_view>

#include "chat/jinja/value.h"

namespace espalier::jinja {

class Evaluation;

struct NamedValue {
  std::string_view name;
  Value value;
};

struct Arguments {
  std::span<const Value> positional;
  std::span<const NamedValue> named;

  // The argument at this position or of this name; nullptr if it was not given.
  const Value* find(size_t index, std::string_view name) const {
    if (index < positional.size()) return &positional[index];
    for (const NamedValue& argument : named) {
      if (argument.name == name) return &argument.value;
    }
    return nullptr;
  }
};

struct Builtin {
  std::string_view name;
  std::string_view parameters;
  Value (*apply)(Evaluation& evaluation, const Value& subject, const Arguments& arguments);
};

// A method taken off its object: `s.upper` without the call.
struct BoundMethod {
  Value self;
  const Builtin* method = nullptr;
};

const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_global(std::string_view name);
const Builtin* find_string_method(std::string_view name);
const Builtin* find_dict_method(std::string_view name);
const Builtin* find_sequence_method(std::string_view name);

// A method of Python's str, list or dict that this engine lacks, so a template that calls it can be refused when it is loaded.
bool is_unsupported_method(std::string_view name);
// A method that would change its object: templates must not (as in Jinja's immutable sandbox).
bool is_mutating_method(std::string_view name);

// Fails if the arguments do not fit the parameters; then applies.
Value apply_builtin(Evaluation& evaluation, const Builtin& builtin, const Value& subject, const Arguments& arguments);

}  // namespace espalier::jinja
