// The tool calls that stand in an answer's text, for scoring answers that no server has parsed. Reads the family's own form,
// <tool_call> <function=NAME> <parameter=KEY> VALUE </parameter> ... </function> </tool_call>, without schemas: every value is text.
// Stands in for the tool-call parser of src/chat, which knows the schemas and streams; once that exists it replaces this file.
#pragma once

#include <string_view>

#include "base/json.h"

namespace espalier {

// Calls in OpenAI shape: [{"type":"function","function":{"name":NAME,"arguments":"{\"KEY\":\"VALUE\"}"}}]. Whitespace around tags does
// not count; one newline after the opening and one before the closing tag of a value are not part of it. A missing <tool_call> or
// </tool_call> is forgiven. A call that the text does not finish (an answer cut by its token limit) is left out, as a server's client
// would find its arguments broken.
Json answer_tool_calls(std::string_view text);

}  // namespace espalier
