// How a reply begins that must call a tool. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "chat/prompt.h"

namespace espalier {

struct ToolCallOpener {
  std::string text;                   // what the reply begins with
  std::vector<std::string> choices;   // it goes on with one of these; empty: freely
};

// `names` are those of the tools that may be called, at least one. A reply that would begin inside a think block leaves it first.
// kNone has no opener: the text is empty.
ToolCallOpener tool_call_opener(ToolCallFormat format, std::span<const std::string> names, bool starts_in_reasoning);

}  // namespace espalier
