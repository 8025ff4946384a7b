// A body of /v1/chat/completions, read and checked, and the engine request it becomes. Pure functions, callable from every thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/prompt.h"
#include "chat/reply_parser.h"
#include "engine/request.h"
#include "server/generation_fields.h"
#include "server/request_limits.h"
#include "tokenizer/tokenizer.h"

namespace espalier {

enum class Thinking { kOff, kOn, kTemplate };  // kTemplate: the chat template's own default

struct ChatRequest {
  std::string model;  // as asked for; empty: not given
  ChatInput input;
  RenderOptions render;
  Request request;  // all but the prompt and what a tool choice adds: see `prepare`
  StreamFields stream;
  bool logprobs = false;
  // Tools whose calls are read from the reply: those of the request, none with tool_choice "none".
  std::shared_ptr<const ToolSchemas> tools;
  std::vector<std::string> required_names;  // not empty: the reply has to call one of these
  bool suppress_calls = false;              // tools stay in the prompt, where they keep it hot, but none may be called
  bool parallel_tool_calls = true;
  std::vector<std::string> unknown_fields;
};

// Precedence of thinking: the request's chat_template_kwargs.enable_thinking, its enable_thinking, its reasoning_effort, then `thinking`.
// Errors: kInvalidArgument and kUnsupported, both name the field.
Result<ChatRequest> read_chat_request(const Json& body, const RequestLimits& limits, const SamplingDefaults& defaults, Thinking thinking);

// Renders the prompt into `chat.request` and returns how its reply is to be read. Errors: the template's own, and kUnsupported where a tool
// has to be called but the template shows no form of calls.
Result<ReplyParserOptions> prepare(ChatRequest& chat, const ChatTemplate& chat_template, const Tokenizer& tokenizer);

}  // namespace espalier
