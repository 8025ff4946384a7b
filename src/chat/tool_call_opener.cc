#include "chat/tool_call_opener.h"

#include <string_view>

#include "base/json.h"

namespace espalier {
namespace {

struct CallFrame {
  std::string_view before_name;
  std::string_view after_name;
};

CallFrame frame_of(ToolCallFormat format) {
  switch (format) {
    case ToolCallFormat::kXmlFunction: return {"<tool_call>\n<function=", ">\n"};
    case ToolCallFormat::kJsonFunction: return {"<tool_call>\n{\"name\": ", ", \"arguments\": "};
    case ToolCallFormat::kNone: break;
  }
  return {};
}

}  // namespace

ToolCallOpener tool_call_opener(ToolCallFormat format, std::span<const std::string> names, bool starts_in_reasoning) {
  ToolCallOpener opener;
  if (format == ToolCallFormat::kNone) return opener;
  const CallFrame frame = frame_of(format);
  for (const std::string& name : names) {
    const std::string written = format == ToolCallFormat::kJsonFunction ? dump_json(Json(name)) : name;
    opener.choices.push_back(written + std::string(frame.after_name));
  }
  if (starts_in_reasoning) opener.text = "\n</think>\n\n";
  opener.text += frame.before_name;
  if (opener.choices.size() == 1) {
    opener.text += opener.choices.front();
    opener.choices.clear();
  }
  return opener;
}

}  // namespace espalier
