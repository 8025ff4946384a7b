// Builds the tree of a template. Grammar and precedences are Jinja's; nesting is bounded, so hostile input cannot exhaust the stack.
#pragma once

#include <string_view>

#include "chat/jinja/ast.h"

namespace espalier::jinja {

// Throws TemplateError with the line: kSyntax, or kUnsupported naming the construct.
Program parse_program(std::string_view source);

}  // namespace espalier::jinja
