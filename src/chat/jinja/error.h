// Inside the template engine a failure unwinds as TemplateError and is turned into a Result where the engine is entered
// (Template::parse, Template::render): sixty filters, tests and methods then read as their Python models do. It never leaves
// src/chat/jinja.
#pragma once

#include <cstdint>
#include <string>

#include "base/format.h"

namespace espalier::jinja {

enum class Failure : uint8_t {
  kSyntax,       // not a Jinja template
  kUnsupported,  // Jinja, but a construct this engine lacks
  kRuntime,      // a type, name or value error while rendering
  kRaised,       // the template itself called raise_exception
  kLimit,        // a RenderLimits bound was reached
};

struct TemplateError {
  Failure failure = Failure::kRuntime;
  std::string message;
  uint32_t line = 0;  // 0: filled in by the innermost statement on the way out
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw TemplateError{Failure::kRuntime, fmt::format(text, std::forward<Args>(args)...)};
}

}  // namespace espalier::jinja
