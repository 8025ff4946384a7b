#include "server/chat_request.h"

#include <array>
#include <utility>

#include "base/format.h"
#include "chat/tool_call_opener.h"
#include "chat/tool_schemas.h"
#include "engine/choice_constraint.h"

namespace espalier {
namespace {

constexpr float kNever = -1000.0f;  // as a bias of a logit

// Fields of the API or of other servers that change nothing here.
constexpr std::array<std::string_view, 14> kWithoutEffect = {
    "user",         "metadata",           "store",           "service_tier", "safety_identifier",  "prompt_cache_key", "prompt_cache_retention",
    "cache_prompt", "timings_per_token",  "return_progress", "session_id",   "conversation_id",    "verbosity",        "include_reasoning",
};

struct RefusedField {
  std::string_view name;
  std::string_view reason;
};
constexpr std::array<RefusedField, 15> kRefused = {{
    {"functions", "the older form of tools is not supported; use tools"},
    {"function_call", "the older form of tool_choice is not supported; use tool_choice"},
    {"audio", "this server reads and writes text only"},
    {"prediction", "predicted outputs are not supported"},
    {"web_search_options", "this server fetches nothing"},
    {"guided_json", "constrained output is not supported yet"},
    {"guided_regex", "constrained output is not supported yet"},
    {"guided_choice", "constrained output is not supported yet"},
    {"guided_grammar", "constrained output is not supported yet"},
    {"structured_outputs", "constrained output is not supported yet"},
    {"grammar", "constrained output is not supported yet"},
    {"json_schema", "constrained output is not supported yet"},
    {"chat_template", "the template of the model is used"},
    {"stop_token_ids", "not supported; use stop"},
    {"bad_words", "not supported; use logit_bias"},
}};

Status refuse_what_is_not_supported(JsonFields& fields) {
  for (const RefusedField& field : kRefused) ESPALIER_TRY(fields.refuse(field.name, field.reason));
  ESPALIER_TRY(fields.refuse("response_format", "only {\"type\":\"text\"} is supported: output is not constrained yet", {{"type", "text"}}));
  ESPALIER_TRY(fields.refuse("modalities", "only [\"text\"] is supported", Json::array({"text"})));
  ESPALIER_TRY(fields.refuse("best_of", "not supported; use n", 1));
  ESPALIER_TRY(fields.refuse("echo", "not supported in a chat", false));
  ESPALIER_TRY(fields.refuse("continue_final_message", "an assistant message cannot be continued", false));
  ESPALIER_TRY(fields.refuse("min_tokens", "not supported", 0));
  ESPALIER_TRY(fields.refuse("use_beam_search", "not supported", false));
  return Ok{};
}

Result<std::optional<bool>> thinking_of_effort(JsonFields& fields, RenderOptions& render) {
  ESPALIER_ASSIGN(const auto effort, fields.string("reasoning_effort", 32));
  if (!effort.has_value()) return std::optional<bool>();
  if (!render.template_kwargs.contains("reasoning_effort")) render.template_kwargs["reasoning_effort"] = *effort;
  if (*effort == "none" || *effort == "minimal") return std::optional<bool>(false);
  if (*effort == "low" || *effort == "medium" || *effort == "high" || *effort == "xhigh") return std::optional<bool>(true);
  return make_error(ErrorCode::kInvalidArgument, "reasoning_effort: expected none, minimal, low, medium, high or xhigh, found {}", short_json(Json(*effort)));
}

Status read_rendering(JsonFields& fields, Thinking thinking, RenderOptions& render) {
  ESPALIER_ASSIGN(const Json* kwargs, fields.object("chat_template_kwargs"));
  if (kwargs != nullptr) render.template_kwargs = *kwargs;
  ESPALIER_ASSIGN(const auto direct, fields.boolean("enable_thinking"));
  ESPALIER_ASSIGN(const auto by_effort, thinking_of_effort(fields, render));
  if (thinking != Thinking::kTemplate) render.enable_thinking = thinking == Thinking::kOn;
  if (thinking == Thinking::kTemplate) render.enable_thinking = std::nullopt;
  if (by_effort.has_value()) render.enable_thinking = by_effort;
  if (direct.has_value()) render.enable_thinking = direct;
  JsonFields kwarg_fields(render.template_kwargs, "chat_template_kwargs");
  ESPALIER_TRY(kwarg_fields.boolean("enable_thinking"));  // the renderer prefers it to everything above; it only has to be one
  return Ok{};
}

Status read_tool_choice(JsonFields& fields, ChatRequest& chat) {
  const Json* choice = fields.any("tool_choice");
  auto tools = std::make_shared<const ToolSchemas>(chat.input.tools);
  const std::string named = "\"none\", \"auto\", \"required\" or {\"type\":\"function\",\"function\":{\"name\":...}}";
  const bool none = choice != nullptr && *choice == "none";
  const bool required = choice != nullptr && *choice == "required";
  if (choice != nullptr && choice->is_string() && !none && !required && *choice != "auto") return wrong_field("tool_choice", named, *choice);
  if (choice != nullptr && choice->is_object()) {
    JsonFields choice_fields(*choice, "tool_choice");
    ESPALIER_ASSIGN(const auto type, choice_fields.string("type", 64));
    if (type.value_or("") != "function") {
      return make_error(ErrorCode::kUnsupported, "tool_choice.type: expected \"function\", found {}", short_json(Json(type.value_or(""))));
    }
    ESPALIER_ASSIGN(const Json* function, choice_fields.object("function"));
    if (function == nullptr) return make_error(ErrorCode::kInvalidArgument, "tool_choice.function: missing");
    JsonFields function_fields(*function, "tool_choice.function");
    ESPALIER_ASSIGN(const auto name, function_fields.string("name", 256));
    if (!tools->declares(name.value_or(""))) {
      return make_error(ErrorCode::kInvalidArgument, "tool_choice.function.name: {} is not among the tools", short_json(Json(name.value_or(""))));
    }
    chat.required_names = {*name};
  } else if (choice != nullptr && !choice->is_string()) {
    return wrong_field("tool_choice", named, *choice);
  }
  if (required) {
    if (tools->empty()) return make_error(ErrorCode::kInvalidArgument, "tool_choice: a tool is required, but no tools are given");
    chat.required_names = tools->names();
  }
  chat.suppress_calls = none && !tools->empty();
  if (!none && !tools->empty()) chat.tools = std::move(tools);
  return Ok{};
}

Status read_logprobs(JsonFields& fields, ChatRequest& chat) {
  ESPALIER_ASSIGN(const auto logprobs, fields.boolean("logprobs"));
  ESPALIER_ASSIGN(const auto top, fields.integer("top_logprobs", 0, kMaxTopLogprobs));
  chat.logprobs = logprobs.value_or(false);
  if (top.value_or(0) > 0 && !chat.logprobs) return make_error(ErrorCode::kInvalidArgument, "top_logprobs: only with logprobs true");
  if (chat.logprobs) chat.request.sampling.top_logprobs = static_cast<int32_t>(top.value_or(0));
  return Ok{};
}

}  // namespace

Result<ChatRequest> read_chat_request(const Json& body, const RequestLimits& limits, const SamplingDefaults& defaults, Thinking thinking) {
  ESPALIER_TRY(check_body(body));
  JsonFields fields(body);
  ChatRequest chat;
  ESPALIER_ASSIGN(chat.model, read_model_name(fields));
  const Json* messages = fields.any("messages");
  if (messages == nullptr) return make_error(ErrorCode::kInvalidArgument, "messages: missing");
  if (messages->is_array() && messages->empty()) return make_error(ErrorCode::kInvalidArgument, "messages: expected at least one, found none");
  const Json* tools = fields.any("tools");
  ESPALIER_ASSIGN(chat.input, normalise_messages(*messages, tools == nullptr ? Json() : *tools, limits.messages));
  ESPALIER_TRY(refuse_what_is_not_supported(fields));
  ESPALIER_TRY(read_generation_fields(fields, limits, defaults, chat.request));
  ESPALIER_ASSIGN(chat.stream, read_stream_fields(fields));
  ESPALIER_TRY(read_logprobs(fields, chat));
  ESPALIER_TRY(read_rendering(fields, thinking, chat.render));
  chat.render.max_steps = limits.max_template_steps;
  ESPALIER_TRY(read_tool_choice(fields, chat));
  ESPALIER_ASSIGN(const auto parallel, fields.boolean("parallel_tool_calls"));
  chat.parallel_tool_calls = parallel.value_or(true);
  for (const std::string_view name : kWithoutEffect) fields.ignore(name);
  chat.unknown_fields = fields.unknown();
  return chat;
}

Result<ReplyParserOptions> prepare(ChatRequest& chat, const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  ESPALIER_ASSIGN(RenderedPrompt prompt, chat_template.render_with_branch_points(chat.input, chat.render));
  const ToolCallFormat format = chat_template.tool_call_format();
  chat.request.prompt = std::move(prompt.text);
  chat.request.branch_points = std::move(prompt.branch_points);
  if (!chat.required_names.empty()) {
    if (format == ToolCallFormat::kNone) {
      return make_error(ErrorCode::kUnsupported, "tool_choice: this model's chat template has no tool calls, so none can be required");
    }
    ToolCallOpener opener = tool_call_opener(format, chat.required_names, prompt.ends_in_reasoning);
    chat.request.forced_ids = tokenizer.encode(opener.text);
    if (!opener.choices.empty()) chat.request.constraint = make_choice_constraint(tokenizer, std::move(opener.choices));
  }
  if (chat.suppress_calls && format != ToolCallFormat::kNone) {
    if (const auto token = tokenizer.token_id("<tool_call>")) chat.request.sampling.logit_bias.emplace_back(*token, kNever);
  }
  return ReplyParserOptions{.format = format, .tools = chat.tools, .starts_in_reasoning = prompt.ends_in_reasoning};
}

}  // namespace espalier
