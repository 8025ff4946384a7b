#include "chat/messages.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/utf8.h"

namespace espalier {
namespace {

Error wrong(std::string_view where, std::string_view expected, const Json& found) {
  return make_error(ErrorCode::kInvalidArgument, "{}: expected {}, found {}", where, expected, found.type_name());
}

constexpr int kArgumentsDepth = 5;  // levels around the arguments of a call: messages, message, tool_calls, call, function

// What a request may hold in all, counted over messages and tools.
class SizeCheck {
 public:
  explicit SizeCheck(const MessageLimits& limits) : limits_(limits) {}

  Status add(const Json& value, std::string_view where, int depth = 1) {
    if (depth > limits_.max_depth)
      return make_error(ErrorCode::kInvalidArgument, "{}: nested deeper than {} levels", where, limits_.max_depth);
    ++bytes_;  // an array of many empty values is not free either
    if (value.is_string()) bytes_ += value.get_ref<const std::string&>().size();
    if (value.is_object()) {
      for (const auto& [key, member] : value.items()) {
        bytes_ += key.size();
        ESPALIER_TRY(add(member, where, depth + 1));
      }
    } else if (value.is_array()) {
      for (const Json& element : value) ESPALIER_TRY(add(element, where, depth + 1));
    }
    if (bytes_ > limits_.max_bytes) {
      return make_error(ErrorCode::kInvalidArgument, "{}: messages and tools hold more than {} bytes up to here", where, limits_.max_bytes);
    }
    return Ok{};
  }

 private:
  const MessageLimits& limits_;
  size_t bytes_ = 0;
};

// A member that is absent and one that is null mean the same nearly everywhere.
const Json* given(const Json& object, std::string_view key) {
  const auto member = object.find(key);
  return member == object.end() || member->is_null() ? nullptr : &*member;
}

std::string clean(const std::string& text) { return is_valid_utf8(text) ? text : replace_invalid_utf8(text); }

// The beginning of a text from the request, fit for an error of one line.
std::string quoted(const std::string& text) { return dump_json(Json(utf8_prefix(text, 40))); }

// The text of a content that is given: a string, or a list of text parts, which are joined without separator as templates do.
Result<std::string> text_of(const Json& content, const std::string& where) {
  if (content.is_string()) return clean(content.get_ref<const std::string&>());
  if (!content.is_array()) return wrong(where, "a string, null or a list of text parts", content);
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const Json& part = content[i];
    const std::string part_where = espalier::format("{}[{}]", where, i);
    if (part.is_string()) {
      text += clean(part.get_ref<const std::string&>());
      continue;
    }
    if (!part.is_object()) return wrong(part_where, "an object with a text", part);
    const auto type = part.find("type");
    if (type != part.end() && !type->is_string()) return wrong(part_where + ".type", "a string", *type);
    const std::string kind = type == part.end() ? "text" : type->get<std::string>();
    if (kind != "text" && kind != "input_text" && kind != "output_text" && kind != "refusal") {
      return make_error(ErrorCode::kInvalidArgument, "{}.type: expected \"text\", found {}: this model reads text only", part_where,
                        quoted(kind));
    }
    const std::string_view key = kind == "refusal" ? "refusal" : "text";
    const auto value = part.find(key);
    if (value == part.end()) return make_error(ErrorCode::kInvalidArgument, "{}.{}: missing", part_where, key);
    if (!value->is_string()) return wrong(espalier::format("{}.{}", part_where, key), "a string", *value);
    text += clean(value->get_ref<const std::string&>());
  }
  return text;
}

// Arguments as templates iterate over them. History that cannot be rendered would make every later turn fail, so nothing is refused.
Json argument_object(const Json* arguments, const MessageLimits& limits) {
  if (arguments == nullptr) return Json::object();
  if (arguments->is_object()) return *arguments;
  if (arguments->is_string()) {
    const std::string& text = arguments->get_ref<const std::string&>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return Json::object();
    JsonLimits json_limits;
    json_limits.max_bytes = limits.max_bytes;
    json_limits.max_depth = std::max(1, limits.max_depth - kArgumentsDepth);
    Result<Json> parsed = parse_json(text, "arguments", json_limits);
    if (parsed.ok() && parsed->is_object()) return *std::move(parsed);
    return Json::object({{"arguments", clean(text)}});
  }
  return Json::object({{"arguments", *arguments}});
}

Result<Json> normalise_tool_call(const Json& call, const std::string& where, const MessageLimits& limits) {
  if (!call.is_object()) return wrong(where, "an object", call);
  const Json* wrapped = given(call, "function");
  const std::string function_where = wrapped == nullptr ? where : where + ".function";
  const Json& function = wrapped == nullptr ? call : *wrapped;  // a call without the wrapper around name and arguments
  if (!function.is_object()) return wrong(function_where, "an object", function);
  const Json* name = given(function, "name");
  if (name == nullptr) return make_error(ErrorCode::kInvalidArgument, "{}.name: missing", function_where);
  if (!name->is_string()) return wrong(function_where + ".name", "a string", *name);

  Json result = Json::object();
  result["type"] = "function";
  if (const Json* id = given(call, "id")) {
    if (!id->is_string()) return wrong(where + ".id", "a string", *id);
    result["id"] = clean(id->get_ref<const std::string&>());
  }
  Json normalised = Json::object();
  normalised["name"] = clean(name->get_ref<const std::string&>());
  normalised["arguments"] = argument_object(given(function, "arguments"), limits);
  result["function"] = std::move(normalised);
  return result;
}

Status add_assistant_members(Json& result, const Json& message, const std::string& where, const MessageLimits& limits) {
  for (const std::string_view key : {"reasoning_content", "reasoning"}) {
    const Json* reasoning = given(message, key);
    if (reasoning == nullptr) continue;
    ESPALIER_ASSIGN(std::string text, text_of(*reasoning, espalier::format("{}.{}", where, key)));
    result["reasoning_content"] = std::move(text);
    break;
  }
  const Json* calls = given(message, "tool_calls");
  if (calls == nullptr) return Ok{};
  if (!calls->is_array()) return wrong(where + ".tool_calls", "a list", *calls);
  if (calls->empty()) return Ok{};
  Json normalised = Json::array();
  for (size_t i = 0; i < calls->size(); ++i) {
    ESPALIER_ASSIGN(Json call, normalise_tool_call((*calls)[i], espalier::format("{}.tool_calls[{}]", where, i), limits));
    normalised.push_back(std::move(call));
  }
  result["tool_calls"] = std::move(normalised);
  return Ok{};
}

Result<std::string> role_of(const Json& message, const std::string& where) {
  if (!message.is_object()) return wrong(where, "an object", message);
  const auto role = message.find("role");
  if (role == message.end()) return make_error(ErrorCode::kInvalidArgument, "{}.role: missing", where);
  if (!role->is_string()) return wrong(where + ".role", "a string", *role);
  const std::string name = role->get<std::string>();
  if (name == "developer") return std::string("system");
  if (name == "system" || name == "user" || name == "assistant" || name == "tool") return name;
  return make_error(ErrorCode::kInvalidArgument, "{}.role: expected system, developer, user, assistant or tool, found {}", where,
                    quoted(name));
}

Result<Json> normalise_message(const Json& message, const std::string& where, const MessageLimits& limits) {
  ESPALIER_ASSIGN(const std::string role, role_of(message, where));
  Json result = Json::object();
  result["role"] = role;
  if (const auto content = message.find("content"); content != message.end()) {
    if (content->is_null()) {
      result["content"] = nullptr;
    } else {
      ESPALIER_ASSIGN(std::string text, text_of(*content, where + ".content"));
      result["content"] = std::move(text);
    }
  }
  if (role == "assistant") ESPALIER_TRY(add_assistant_members(result, message, where, limits));
  if (role == "tool") {
    if (const Json* id = given(message, "tool_call_id")) {
      if (!id->is_string()) return wrong(where + ".tool_call_id", "a string", *id);
      result["tool_call_id"] = clean(id->get_ref<const std::string&>());
    }
  }
  if (const Json* name = given(message, "name")) {
    if (!name->is_string()) return wrong(where + ".name", "a string", *name);
    result["name"] = clean(name->get_ref<const std::string&>());
  }
  return result;
}

void append_system_text(Json& first, const Json& further) {
  const auto content = further.find("content");
  if (content == further.end() || !content->is_string() || content->get_ref<const std::string&>().empty()) return;
  Json& joined = first["content"];
  const bool has_text = joined.is_string() && !joined.get_ref<const std::string&>().empty();
  joined = has_text ? joined.get<std::string>() + "\n\n" + content->get<std::string>() : content->get<std::string>();
}

Result<Json> normalise_tools(const Json& tools, const MessageLimits& limits, SizeCheck& size) {
  if (tools.is_null()) return Json::array();
  if (!tools.is_array()) return wrong("tools", "a list", tools);
  if (tools.size() > limits.max_tools) {
    return make_error(ErrorCode::kInvalidArgument, "tools: expected at most {}, found {}", limits.max_tools, tools.size());
  }
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string where = espalier::format("tools[{}]", i);
    if (!tools[i].is_object()) return wrong(where, "an object", tools[i]);
    ESPALIER_TRY(size.add(tools[i], where));
  }
  return tools;
}

}  // namespace

Result<ChatInput> normalise_messages(const Json& messages, const Json& tools, const MessageLimits& limits) {
  if (!messages.is_array()) return wrong("messages", "a list", messages);
  if (messages.size() > limits.max_messages) {
    return make_error(ErrorCode::kInvalidArgument, "messages: expected at most {}, found {}", limits.max_messages, messages.size());
  }
  SizeCheck size(limits);
  ChatInput input;
  input.messages = Json::array();
  bool leading = true;  // only system messages so far
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string where = espalier::format("messages[{}]", i);
    ESPALIER_TRY(size.add(messages[i], where));
    ESPALIER_ASSIGN(Json message, normalise_message(messages[i], where, limits));
    const bool is_system = message["role"] == "system";
    if (is_system && leading && !input.messages.empty()) {
      append_system_text(input.messages.front(), message);
      continue;
    }
    if (is_system && !leading) message["role"] = "user";
    leading = leading && is_system;
    input.messages.push_back(std::move(message));
  }
  ESPALIER_ASSIGN(input.tools, normalise_tools(tools, limits, size));
  return input;
}

}  // namespace espalier
