#include "replay/workload.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/format.h"

namespace espalier {
namespace {

enum class Role { kUser, kAssistant, kTool };

// Values that the harness lets a row set for its request.
constexpr const char* kRequestKeys[] = {"model", "max_completion_tokens", "max_new_tokens", "stream"};
constexpr size_t kMaxIdBytes = 1024;

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

// A member that is present and not null.
const Json* given(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() || found->is_null() ? nullptr : &*found;
}

const Json* given_string(const Json& row, const char* key) {
  const Json* value = given(row, key);
  return value != nullptr && value->is_string() ? value : nullptr;
}

class WorkloadReader {
 public:
  explicit WorkloadReader(std::string_view source) { workload_.source = source; }

  Status add_line(std::string_view line, size_t line_number) {
    where_ = format("{}:{}", workload_.source, line_number);
    line_number_ = line_number;
    ESPALIER_ASSIGN(const Json row, parse_json(line, where_));
    if (!row.is_object()) return fail("expected a JSON object, found {}", row.type_name());
    if (const Json* type = given_string(row, "_type"); type != nullptr && *type == "dataset_metadata") return Ok{};
    ESPALIER_TRY(select_conversation(row));
    return add_row(row);
  }

  Result<Workload> finish() && {
    if (workload_.conversations.empty()) return make_error(ErrorCode::kCorrupt, "{}: no conversation in it", workload_.source);
    close_conversation();
    return std::move(workload_);
  }

 private:
  template <typename... Args>
  Error fail(fmt::format_string<Args...> text, Args&&... args) const {
    return Error{ErrorCode::kCorrupt, where_ + ": " + fmt::format(text, std::forward<Args>(args)...)};
  }

  Status select_conversation(const Json& row) {
    const Json* id = given_string(row, "conversation_id");
    if (id == nullptr) return fail("'conversation_id' must be a string");
    const std::string& name = id->get_ref<const std::string&>();
    if (name.empty() || name.size() > kMaxIdBytes || !is_printable_ascii(name)) {
      return fail("'conversation_id' must be 1 to {} printable ASCII characters", kMaxIdBytes);
    }
    if (!workload_.conversations.empty() && workload_.conversations.back().id == name) return Ok{};
    const auto [first, is_new] = first_line_.emplace(name, line_number_);
    if (!is_new) return fail("conversation '{}' began at line {} and was interrupted by another", name, first->second);
    close_conversation();
    workload_.conversations.emplace_back().id = name;
    previous_.reset();
    num_rows_ = 0;
    system_.clear();
    return Ok{};
  }

  // The first row with a system text decides, wherever it stands; the message is the first of every prompt.
  void close_conversation() {
    if (workload_.conversations.empty() || system_.empty()) return;
    Conversation& conversation = workload_.conversations.back();
    conversation.messages.insert(conversation.messages.begin(), Json{{"role", "system"}, {"content", system_}});
    for (ConversationTurn& turn : conversation.turns) ++turn.num_messages;
  }

  Status add_row(const Json& row) {
    const auto number = json_int(row, "turn", where_);
    if (!number.ok()) return number.error();
    if (*number != num_rows_ + 1) return fail("turn {} of '{}', expected {}", *number, conversation().id, num_rows_ + 1);
    ++num_rows_;
    for (const char* key : kRequestKeys) {
      if (given(row, key) != nullptr) return Error{ErrorCode::kUnsupported, format("{}: '{}' in a row is not supported", where_, key)};
    }
    if (const Json* system = given_string(row, "system"); system != nullptr && system_.empty()) system_ = system->get<std::string>();
    ESPALIER_TRY(add_tools(row));

    const Json* role = given_string(row, "role");
    if (role != nullptr && *role == "user") return add_user(row);
    if (role != nullptr && *role == "assistant") return add_assistant(row);
    if (role != nullptr && *role == "tool") return add_tool(row);
    return fail("'role' must be \"user\", \"assistant\" or \"tool\"");
  }

  Status add_tools(const Json& row) {
    const Json* tools = given(row, "tools");
    if (tools == nullptr) return Ok{};
    if (!tools->is_array()) return fail("'tools' must be an array, found {}", tools->type_name());
    if (num_rows_ == 1) {
      conversation().tools = *tools;
    } else if (conversation().tools != *tools) {
      return Error{ErrorCode::kUnsupported, where_ + ": 'tools' other than those of the conversation's first row are not supported"};
    }
    return Ok{};
  }

  Status add_user(const Json& row) {
    if (previous_ && *previous_ != Role::kAssistant) return fail("a user row must open the conversation or follow an assistant row");
    if (previous_ && previous_has_calls_) return fail("a user row follows an assistant row whose calls have no results");
    const Json* content = given_string(row, "content");
    if (content == nullptr) return fail("'content' of a user row must be a string");
    conversation().messages.push_back(Json{{"role", "user"}, {"content", *content}});
    previous_ = Role::kUser;
    end_turn();
    return Ok{};
  }

  // The answer's text is left out where there is none: the harness sends no `content` then, not even null.
  Status add_assistant(const Json& row) {
    if (!previous_ || *previous_ == Role::kAssistant) return fail("an assistant row must follow a user or tool row");
    Json message{{"role", "assistant"}};
    const Json* content = given(row, "content");
    if (content != nullptr) {
      if (!content->is_string()) return fail("'content' of an assistant row must be a string, found {}", content->type_name());
      message["content"] = *content;
    }
    const Json* calls = given(row, "tool_calls");
    if (calls != nullptr) {
      ESPALIER_TRY(check_calls(*calls));
      if (!calls->empty()) message["tool_calls"] = *calls;
    }
    previous_has_calls_ = message.contains("tool_calls");
    if (content == nullptr && !previous_has_calls_) return fail("an assistant row needs 'content' or 'tool_calls'");
    if (const Json* reasoning = given(row, "reasoning_content"); reasoning != nullptr) {
      if (!reasoning->is_string()) return fail("'reasoning_content' must be a string, found {}", reasoning->type_name());
      message["reasoning_content"] = *reasoning;
    }
    conversation().messages.push_back(std::move(message));
    previous_ = Role::kAssistant;
    return Ok{};
  }

  Status check_calls(const Json& calls) const {
    if (!calls.is_array()) return fail("'tool_calls' must be an array, found {}", calls.type_name());
    for (size_t i = 0; i < calls.size(); ++i) {
      const Json* function = calls[i].is_object() ? given(calls[i], "function") : nullptr;
      if (function == nullptr || !function->is_object()) return fail("'tool_calls[{}]' must be an object with a 'function'", i);
      if (given_string(*function, "name") == nullptr) return fail("'tool_calls[{}].function.name' must be a string", i);
      const Json* arguments = given(*function, "arguments");
      if (arguments == nullptr || !(arguments->is_string() || arguments->is_object())) {
        return fail("'tool_calls[{}].function.arguments' must be a string or an object", i);
      }
    }
    return Ok{};
  }

  Status add_tool(const Json& row) {
    if (!previous_ || *previous_ != Role::kAssistant || !previous_has_calls_) return fail("a tool row must follow an assistant row with calls");
    const Json* results = given(row, "tool_results");
    if (results == nullptr || !results->is_array() || results->empty()) return fail("'tool_results' must be a non-empty array");
    for (size_t i = 0; i < results->size(); ++i) {
      const Json& result = (*results)[i];
      const Json* content = result.is_object() ? given_string(result, "content") : nullptr;
      const Json* id = result.is_object() ? given_string(result, "tool_call_id") : nullptr;
      if (content == nullptr || id == nullptr) return fail("'tool_results[{}]' must have the strings 'tool_call_id' and 'content'", i);
      conversation().messages.push_back(Json{{"role", "tool"}, {"content", *content}, {"tool_call_id", *id}});
    }
    previous_ = Role::kTool;
    end_turn();
    return Ok{};
  }

  void end_turn() { conversation().turns.push_back({.number = num_rows_, .num_messages = conversation().messages.size()}); }

  Conversation& conversation() { return workload_.conversations.back(); }

  Workload workload_;
  std::unordered_map<std::string, size_t> first_line_;  // of each conversation
  std::string where_;                                    // file:line of the row
  size_t line_number_ = 0;
  // Of the conversation that is being read:
  std::optional<Role> previous_;
  bool previous_has_calls_ = false;
  int64_t num_rows_ = 0;
  std::string system_;
};

}  // namespace

const Json* Conversation::recorded_answer(const ConversationTurn& turn) const {
  if (turn.num_messages >= messages.size()) return nullptr;
  const Json& next = messages[turn.num_messages];
  return next.at("role") == "assistant" ? &next : nullptr;
}

size_t Workload::num_turns() const {
  size_t count = 0;
  for (const Conversation& conversation : conversations) count += conversation.turns.size();
  return count;
}

Result<Workload> parse_workload(std::string_view text, std::string_view source, const WorkloadLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return make_error(ErrorCode::kResourceExhausted, "{}: {} bytes exceed the limit of {}", source, text.size(), limits.max_bytes);
  }
  WorkloadReader reader(source);
  for (size_t begin = 0, line_number = 1; begin < text.size(); ++line_number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.size() > limits.max_line_bytes) {
      return make_error(ErrorCode::kResourceExhausted, "{}:{}: a line of {} bytes exceeds the limit of {}", source, line_number, line.size(),
                        limits.max_line_bytes);
    }
    if (!is_blank(line)) ESPALIER_TRY(reader.add_line(line, line_number));
  }
  return std::move(reader).finish();
}

Result<Workload> load_workload(const std::string& path, const WorkloadLimits& limits) {
  ESPALIER_ASSIGN(const std::string text, read_file(path, limits.max_bytes));
  return parse_workload(text, path, limits);
}

}  // namespace espalier
