// Python's two ways to put values into a text: "%s-%d" % (a, b) and "{} {name}".format(...). The commonly used conversions; others fail by
// name.
#pragma once

#include "chat/jinja/builtin.h"
#include "chat/jinja/text.h"

namespace espalier::jinja {

class Evaluation;

// `values` is a tuple, a dictionary for %(name)s, or one value.
Text percent_format(Evaluation& evaluation, const Text& pattern, const Value& values);
Text brace_format(Evaluation& evaluation, const Text& pattern, const Arguments& arguments);

}  // namespace espalier::jinja
