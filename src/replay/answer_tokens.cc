#include "replay/answer_tokens.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/json.h"
#include "chat/messages.h"

namespace espalier {
namespace {

// The calls as the harness writes them where no template renders them: compact, with its order of keys.
std::string calls_as_json(const std::vector<AnswerCall>& calls) {
  Json array = Json::array();
  for (const AnswerCall& call : calls) {
    Json function = Json::object({{"arguments", call.arguments}});
    if (!call.name.empty()) function["name"] = call.name;
    Json object = Json::object({{"type", call.type}, {"function", std::move(function)}});
    if (!call.id.empty()) object["id"] = call.id;
    array.push_back(std::move(object));
  }
  return dump_json(array);
}

}  // namespace

AnswerTokens::AnswerTokens(std::shared_ptr<const Tokenizer> tokenizer, std::shared_ptr<const ChatTemplate> chat_template)
    : tokenizer_(std::move(tokenizer)), template_(std::move(chat_template)) {}

int64_t AnswerTokens::num_tokens(std::string_view text) const { return static_cast<int64_t>(tokenizer_->encode(text).size()); }

// Of an empty user message and the assistant's.
Result<int64_t> AnswerTokens::num_message_tokens(const Json& assistant) const {
  const Json user = Json::object({{"role", "user"}, {"content", ""}});
  ESPALIER_ASSIGN(const ChatInput input, normalise_messages(Json::array({user, assistant}), nullptr));
  ESPALIER_ASSIGN(const MarkedText text, template_->render(input, {.add_generation_prompt = false, .enable_thinking = std::nullopt}));
  return num_tokens(text.text);
}

Result<int64_t> AnswerTokens::count_rendered(const AnswerParts& parts) const {
  Json message = Json::object({{"role", "assistant"}, {"content", ""}});
  ESPALIER_ASSIGN(const int64_t frame, num_message_tokens(message));
  message["content"] = parts.content;
  if (!parts.reasoning.empty()) message["reasoning_content"] = parts.reasoning;
  for (const AnswerCall& call : parts.calls) {
    ESPALIER_ASSIGN(Json arguments, parse_json(call.arguments, "arguments"));
    if (call.name.empty() || !arguments.is_object()) return make_error(ErrorCode::kInvalidArgument, "a call that no template renders");
    message["tool_calls"].push_back({{"type", call.type}, {"function", {{"name", call.name}, {"arguments", std::move(arguments)}}}});
  }
  ESPALIER_ASSIGN(const int64_t tokens, num_message_tokens(message));
  return std::max<int64_t>(0, tokens - frame);
}

int64_t AnswerTokens::count(const AnswerParts& parts) const {
  if (parts.calls.empty() && parts.reasoning.empty()) return num_tokens(parts.content);
  const Result<int64_t> rendered = count_rendered(parts);
  if (rendered.ok()) return *rendered;
  std::string text = parts.content;
  const auto append = [&](const std::string& more) { text += (text.empty() || more.empty() ? "" : "\n") + more; };
  append(parts.reasoning);
  if (!parts.calls.empty()) append(calls_as_json(parts.calls));
  return num_tokens(text);
}

Result<int64_t> AnswerTokens::count_prompt(const Conversation& conversation, const ConversationTurn& turn) const {
  Json messages = Json::array();
  for (size_t i = 0; i < turn.num_messages; ++i) messages.push_back(conversation.messages[i]);
  ESPALIER_ASSIGN(const ChatInput input, normalise_messages(messages, conversation.tools));
  ESPALIER_ASSIGN(const MarkedText text, template_->render(input, {.enable_thinking = std::nullopt}));
  return num_tokens(text.text);
}

}  // namespace espalier
