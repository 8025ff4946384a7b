#include "chat/jinja/builtin.h"

#include <algorithm>
#include <array>

#include "chat/jinja/evaluation.h"

namespace espalier::jinja {
namespace {

// Position of `name` in "a,b,c", or npos; `count` is set to the number of names.
size_t parameter_index(std::string_view parameters, std::string_view name, size_t& count) {
  count = 0;
  size_t found = std::string_view::npos;
  while (!parameters.empty()) {
    const size_t comma = std::min(parameters.find(','), parameters.size());
    if (parameters.substr(0, comma) == name) found = count;
    ++count;
    parameters.remove_prefix(std::min(comma + 1, parameters.size()));
  }
  return found;
}

constexpr std::array<std::string_view, 12> kUnsupportedMethods = {"casefold",  "encode",       "expandtabs", "format_map",
                                                                  "isascii",   "isidentifier", "istitle",    "isprintable",
                                                                  "maketrans", "translate",    "fromkeys",   "decode"};
constexpr std::array<std::string_view, 11> kMutatingMethods = {"append", "clear",      "extend", "insert",  "pop",  "popitem",
                                                               "remove", "setdefault", "sort",   "reverse", "update"};

}  // namespace

bool is_unsupported_method(std::string_view name) {
  return std::find(kUnsupportedMethods.begin(), kUnsupportedMethods.end(), name) != kUnsupportedMethods.end();
}

bool is_mutating_method(std::string_view name) {
  return std::find(kMutatingMethods.begin(), kMutatingMethods.end(), name) != kMutatingMethods.end();
}

Value apply_builtin(Evaluation& evaluation, const Builtin& builtin, const Value& subject, const Arguments& arguments) {
  if (builtin.parameters != "*") {
    size_t count = 0;
    parameter_index(builtin.parameters, "", count);
    if (arguments.positional.size() > count) {
      fail("{}() takes at most {} arguments ({} given)", builtin.name, count, arguments.positional.size());
    }
    for (const NamedValue& argument : arguments.named) {
      if (parameter_index(builtin.parameters, argument.name, count) == std::string_view::npos) {
        fail("{}() got an unexpected keyword argument '{}'", builtin.name, argument.name);
      }
    }
  }
  return builtin.apply(evaluation, subject, arguments);
}

}  // namespace espalier::jinja
