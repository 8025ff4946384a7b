// Any JSON as the messages and tools of a request: normalisation refuses it in one line or makes something that normalises to itself,
// and rendering it, with branch points, ends within its limits.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/json.h"
#include "chat/messages.h"
#include "chat/prompt.h"

namespace {

constexpr std::string_view kTemplate =
    "{% if tools %}{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content is string %}<think>{{ m.reasoning_content | trim }}</think>{% endif %}{{ m.content if m.content is not none "
    "}}"
    "{% for c in m.tool_calls or [] %}{% for k, v in c.function.arguments | items %}<parameter={{ k }}>{{ v if v is string else v | tojson "
    "}}"
    "</parameter>{% endfor %}{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier;
  const Result<Json> body = parse_json(std::string_view(reinterpret_cast<const char*>(data), size), "input");
  if (!body.ok() || !body->is_object()) return 0;
  const Json messages = body->value("messages", Json());
  const Json tools = body->value("tools", Json());
  const Result<ChatInput> input = normalise_messages(messages, tools);
  if (!input.ok()) {
    ESPALIER_CHECK(input.error().code == ErrorCode::kInvalidArgument && input.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const Result<ChatInput> again = normalise_messages(input->messages, input->tools);
  if (again.ok()) {
    ESPALIER_CHECK(again->messages == input->messages && again->tools == input->tools);
  } else {  // wrapping odd arguments adds a level
    ESPALIER_CHECK(again.error().message.find("nested deeper") != std::string::npos);
  }
  static const std::shared_ptr<const ChatTemplate> chat_template = ChatTemplate::parse(kTemplate, "template").value();
  const RenderedPrompt prompt = chat_template->render_with_branch_points(*input, {}).value();
  for (const size_t point : prompt.branch_points) ESPALIER_CHECK(point > 0 && point <= prompt.text.size());
  // The template's own control text stands where the template put it: one opener a message and one for the reply.
  size_t openers = 0;
  for (size_t at = prompt.text.text.find("<|im_start|>"); at != std::string::npos; at = prompt.text.text.find("<|im_start|>", at + 1)) {
    openers += prompt.text.origin_at(at) == Origin::kTemplate;
  }
  ESPALIER_CHECK(openers == input->messages.size() + 1);
  return 0;
}
