// A model's chat template: messages to the prompt's text, in which every byte knows whether the template or the request wrote it.
// Immutable after loading, usable from every thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "chat/messages.h"
#include "tokenizer/marked_text.h"

namespace espalier {

namespace jinja {
class Template;
}

// How the model writes a tool call, as its template shows it.
enum class ToolCallFormat {
  kNone,
  kXmlFunction,   // <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>
  kJsonFunction,  // <tool_call>{"name": NAME, "arguments": {...}}</tool_call>
};

struct RenderOptions {
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking = false;  // nullopt: the template's own default
  Json template_kwargs = Json::object();        // further variables; they override those above, but not messages and tools
  size_t max_steps = size_t{20} << 20;          // of one rendering: expressions and statements evaluated
};

struct RenderedPrompt {
  MarkedText text;
  // Byte lengths of prefixes of `text`, ascending, at which later prompts are likely to leave it: the end of the tools-and-system
  // block, and each distinct common prefix with the prompts that may follow this one.
  std::vector<size_t> branch_points;
  bool ends_in_reasoning = false;  // the template left a think block open for the model to fill
};

class ChatTemplate {
 public:
  // chat_template.jinja of the folder, else chat_template of its tokenizer_config.json; kNotFound if it has neither. The names of special
  // tokens in tokenizer_config.json (bos_token, eos_token, ...) become variables, as templates expect.
  static Result<std::shared_ptr<const ChatTemplate>> load(const std::string& model_dir);
  // `name` stands in errors, with the line: kUnsupported for what is no template or uses a construct that the engine lacks.
  static Result<std::shared_ptr<const ChatTemplate>> parse(std::string_view source, std::string_view name);
  ~ChatTemplate();

  // kInvalidArgument if the template refuses the messages (the message is the template's own) or fails on them, kResourceExhausted beyond
  // the limits of a rendering.
  Result<MarkedText> render(const ChatInput& input, const RenderOptions& options) const;
  // The same text. Probes that the template refuses are left out; they never fail the request.
  Result<RenderedPrompt> render_with_branch_points(const ChatInput& input, const RenderOptions& options) const;

  ToolCallFormat tool_call_format() const { return tool_call_format_; }
  // Whether the template renders the reasoning of assistant messages as think blocks.
  bool has_reasoning() const { return has_reasoning_; }

 private:
  struct SpecialToken {
    std::string name;
    Json text;
  };
  ChatTemplate(jinja::Template program, std::vector<SpecialToken> special_tokens);
  static Result<std::shared_ptr<const ChatTemplate>> create(std::string_view source, std::string_view name, const Json& tokenizer_config);

  Result<MarkedText> render_messages(const Json& messages, const Json& tools, const RenderOptions& options,
                                     bool add_generation_prompt) const;
  void learn_format();

  std::unique_ptr<const jinja::Template> program_;
  std::vector<SpecialToken> special_tokens_;
  ToolCallFormat tool_call_format_ = ToolCallFormat::kNone;
  bool has_reasoning_ = false;
};

}  // namespace espalier
