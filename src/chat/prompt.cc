#include "chat/prompt.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "chat/jinja/template.h"

namespace espalier {
namespace {

constexpr size_t kMaxTemplateBytes = size_t{4} << 20;

// Length of the longest common prefix. Marks are left out on purpose: templates write "assistant" themselves behind the messages, but take
// it from the message within them. Both prompts hold the same messages and differ in the ends that we choose, so no control token is at
// stake.
size_t common_prefix(const MarkedText& a, const MarkedText& b) {
  const size_t shorter = std::min(a.size(), b.size());
  const auto difference = std::mismatch(a.text.begin(), a.text.begin() + static_cast<ptrdiff_t>(shorter), b.text.begin());
  return static_cast<size_t>(difference.first - a.text.begin());
}

Json message(std::string_view role, std::string_view content) { return Json::object({{"role", role}, {"content", content}}); }

// What may follow a prompt: a reply with reasoning, a plain reply, and a plain reply that a user answered.
std::vector<Json> likely_continuations() {
  Json with_reasoning = message("assistant", "reply");
  with_reasoning["reasoning_content"] = "reasoning";
  return {Json::array({std::move(with_reasoning)}), Json::array({message("assistant", "reply")}),
          Json::array({message("assistant", "reply"), message("user", "question")})};
}

// Where the template itself last wrote `tag`, plus one; 0 if it never did. What a message spells does not count.
size_t last_written(const MarkedText& text, std::string_view tag) {
  for (size_t at = text.text.rfind(tag); at != std::string::npos; at = at == 0 ? std::string::npos : text.text.rfind(tag, at - 1)) {
    if (text.origin_at(at) == Origin::kTemplate) return at + 1;
  }
  return 0;
}

bool starts_with_system(const ChatInput& input) {
  if (!input.messages.is_array() || input.messages.empty() || !input.messages.front().is_object()) return false;
  const auto role = input.messages.front().find("role");
  return role != input.messages.front().end() && *role == "system";
}

// The template among those a tokenizer_config.json offers.
Result<std::string> configured_template(const Json& config, const std::string& model_dir) {
  const auto entry = config.find("chat_template");
  if (entry != config.end() && entry->is_string()) return entry->get<std::string>();
  if (entry != config.end() && entry->is_array()) {
    for (const Json& named : *entry) {
      if (!named.is_object() || !named.contains("name") || named["name"] != "default") continue;
      return json_string(named, "template", "tokenizer_config.json.chat_template");
    }
  }
  return make_error(ErrorCode::kNotFound, "{}: neither chat_template.jinja nor a chat_template in tokenizer_config.json", model_dir);
}

}  // namespace

ChatTemplate::ChatTemplate(jinja::Template program, std::vector<SpecialToken> special_tokens)
    : program_(std::make_unique<const jinja::Template>(std::move(program))), special_tokens_(std::move(special_tokens)) {}

ChatTemplate::~ChatTemplate() = default;

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::create(std::string_view source, std::string_view name,
                                                                 const Json& tokenizer_config) {
  ESPALIER_ASSIGN(jinja::Template program, jinja::Template::parse(source, name));
  std::vector<SpecialToken> special_tokens;
  for (const std::string_view token : {"bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token"}) {
    if (!tokenizer_config.is_object()) break;
    const auto entry = tokenizer_config.find(token);
    if (entry == tokenizer_config.end()) continue;
    const Json text = entry->is_object() && entry->contains("content") ? (*entry)["content"] : *entry;
    if (text.is_string()) special_tokens.push_back({std::string(token), text});
  }
  std::shared_ptr<ChatTemplate> chat_template(new ChatTemplate(std::move(program), std::move(special_tokens)));
  chat_template->learn_format();
  return std::shared_ptr<const ChatTemplate>(std::move(chat_template));
}

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::parse(std::string_view source, std::string_view name) {
  return create(source, name, nullptr);
}

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::load(const std::string& model_dir) {
  Result<Json> config = load_json(model_dir + "/tokenizer_config.json");
  if (!config.ok() && config.error().code != ErrorCode::kNotFound) return std::move(config).error();
  const Json tokenizer_config = config.ok() ? *std::move(config) : Json::object();

  const std::string path = model_dir + "/chat_template.jinja";
  Result<std::string> source = read_file(path, kMaxTemplateBytes);
  if (source.ok()) return create(*source, path, tokenizer_config);
  if (source.error().code != ErrorCode::kNotFound) return std::move(source).error();
  ESPALIER_ASSIGN(const std::string configured, configured_template(tokenizer_config, model_dir));
  return create(configured, model_dir + "/tokenizer_config.json: chat_template", tokenizer_config);
}

Result<MarkedText> ChatTemplate::render_messages(const Json& messages, const Json& tools, const RenderOptions& options,
                                                 bool add_generation_prompt) const {
  const Json& kwargs = options.template_kwargs;
  if (!kwargs.is_null() && !kwargs.is_object()) {
    return make_error(ErrorCode::kInvalidArgument, "template_kwargs: expected an object, found {}", kwargs.type_name());
  }
  const Json generation_prompt = add_generation_prompt;
  const Json enable_thinking = options.enable_thinking.value_or(false);
  const Json nothing = nullptr;
  std::vector<jinja::TemplateInput> inputs = {{"messages", &messages}, {"tools", tools.empty() ? &nothing : &tools}};
  const auto offer = [&](const jinja::TemplateInput& input) {
    const auto known = std::find_if(inputs.begin(), inputs.end(), [&](const jinja::TemplateInput& i) { return i.name == input.name; });
    if (known == inputs.end()) inputs.push_back(input);
  };
  // The first offer of a name counts. A probe's end is not the request's to choose.
  if (!add_generation_prompt) offer({"add_generation_prompt", &generation_prompt});
  for (auto entry = kwargs.begin(); kwargs.is_object() && entry != kwargs.end(); ++entry) offer({entry.key(), &entry.value()});
  offer({"add_generation_prompt", &generation_prompt});
  if (options.enable_thinking) offer({"enable_thinking", &enable_thinking});
  for (const SpecialToken& token : special_tokens_) offer({token.name, &token.text, Origin::kTemplate});
  jinja::RenderLimits limits;
  limits.max_steps = options.max_steps;
  return program_->render(inputs, limits);
}

Result<MarkedText> ChatTemplate::render(const ChatInput& input, const RenderOptions& options) const {
  return render_messages(input.messages, input.tools, options, options.add_generation_prompt);
}

Result<RenderedPrompt> ChatTemplate::render_with_branch_points(const ChatInput& input, const RenderOptions& options) const {
  RenderedPrompt prompt;
  ESPALIER_ASSIGN(prompt.text, render(input, options));
  prompt.ends_in_reasoning = last_written(prompt.text, "<think>") > last_written(prompt.text, "</think>");

  if (!input.tools.empty() || starts_with_system(input)) {
    // Where two conversations with the same beginning, but different first questions, part.
    std::vector<MarkedText> openings;
    for (const std::string_view question : {"a", "b"}) {
      Json messages = Json::array();
      if (starts_with_system(input)) messages.push_back(input.messages.front());
      messages.push_back(message("user", question));
      Result<MarkedText> opening = render_messages(messages, input.tools, options, false);
      if (opening.ok()) openings.push_back(*std::move(opening));
    }
    if (openings.size() == 2) {
      prompt.branch_points.push_back(std::min(common_prefix(openings[0], openings[1]), common_prefix(openings[0], prompt.text)));
    }
  }
  Json messages = input.messages;
  const size_t num_messages = messages.size();
  for (const Json& continuation : likely_continuations()) {
    for (const Json& next : continuation) messages.push_back(next);
    const Result<MarkedText> probe = render_messages(messages, input.tools, options, false);
    if (probe.ok()) prompt.branch_points.push_back(common_prefix(*probe, prompt.text));
    messages.erase(messages.begin() + static_cast<ptrdiff_t>(num_messages), messages.end());
  }
  std::sort(prompt.branch_points.begin(), prompt.branch_points.end());
  prompt.branch_points.erase(std::unique(prompt.branch_points.begin(), prompt.branch_points.end()), prompt.branch_points.end());
  if (!prompt.branch_points.empty() && prompt.branch_points.front() == 0) prompt.branch_points.erase(prompt.branch_points.begin());
  return prompt;
}

// How calls and reasoning look is seen by rendering some; a template that refuses has neither.
void ChatTemplate::learn_format() {
  RenderOptions options;
  options.enable_thinking = true;
  Json call = message("assistant", "");
  call["tool_calls"] = Json::array({{{"id", "call00000"},
                                     {"type", "function"},
                                     {"function", {{"name", "probe_name"}, {"arguments", {{"probe_key", "probe_value"}}}}}}});
  const Json tools = Json::array(
      {{{"type", "function"},
        {"function",
         {{"name", "other_name"}, {"description", ""}, {"parameters", {{"type", "object"}, {"properties", Json::object()}}}}}}});
  const Result<MarkedText> with_call = render_messages(Json::array({message("user", "question"), std::move(call)}), tools, options, false);
  if (with_call.ok()) {
    const std::string& text = with_call->text;
    if (text.find("<function=probe_name>") != std::string::npos && text.find("<parameter=probe_key>") != std::string::npos) {
      tool_call_format_ = ToolCallFormat::kXmlFunction;
    } else if (text.find("\"name\": \"probe_name\"") != std::string::npos && text.find("<tool_call>") != std::string::npos) {
      tool_call_format_ = ToolCallFormat::kJsonFunction;
    }
  }
  Json reply = message("assistant", "reply");
  reply["reasoning_content"] = "probe_reasoning";
  const Result<MarkedText> with_reasoning =
      render_messages(Json::array({message("user", "question"), std::move(reply)}), Json::array(), options, false);
  has_reasoning_ = with_reasoning.ok() && with_reasoning->text.find("<think>") != std::string::npos &&
                   with_reasoning->text.find("probe_reasoning") != std::string::npos;
}

}  // namespace espalier
