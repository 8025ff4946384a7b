// OpenAI-shaped messages and tools to the shape that chat templates expect. Pure functions, callable from every thread.
#pragma once

#include <cstddef>

#include "base/json.h"
#include "base/result.h"

namespace espalier {

struct ChatInput {
  Json messages;  // array of objects, each with a role
  Json tools;     // array of objects, empty when there are none
};

struct MessageLimits {
  size_t max_messages = 4096;
  size_t max_tools = 1024;
  int max_depth = 64;                   // nesting of any message or tool, and of arguments given as text
  size_t max_bytes = size_t{32} << 20;  // strings and keys of messages and tools together
};

// Errors are kInvalidArgument and name the place: "messages[3].content: expected ...". `tools` may be null.
// - developer becomes system. System messages at the beginning become one, joined by an empty line; a later one becomes a user
//   message where it stands, because most templates refuse it and moving it to the front would change the text of everything cached.
// - content: a string stays; null stays null and a missing one stays missing; a list of text parts becomes their concatenation.
// - reasoning_content of an assistant message stays; `reasoning` is read as another name of it.
// - arguments of a tool call: an object stays; a string that holds a JSON object becomes it, keys in order. Anything else, which a
//   model that went astray may have produced, becomes {"arguments": <what was given>}, so that the history can still be rendered.
Result<ChatInput> normalise_messages(const Json& messages, const Json& tools, const MessageLimits& limits = {});

}  // namespace espalier
