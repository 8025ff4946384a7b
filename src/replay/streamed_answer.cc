#include "replay/streamed_answer.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/utf8.h"

namespace espalier {
namespace {

constexpr size_t kMaxErrorWords = 300;  // bytes

Error wrong(std::string_view where, std::string_view expected, const Json& found) {
  return make_error(ErrorCode::kCorrupt, "a chunk of the stream: {}: expected {}, found {}", where, expected, found.type_name());
}

// nullptr where the member is absent.
const Json* member(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// Empty where the member is absent or null.
Result<std::string> text_member(const Json& object, std::string_view key, std::string_view where) {
  const Json* const value = member(object, key);
  if (value == nullptr || value->is_null()) return std::string();
  if (!value->is_string()) return wrong(where, "a string or null", *value);
  return value->get<std::string>();
}

void replace_if_given(std::string& old, std::string text) {
  if (!text.empty()) old = std::move(text);
}

// One element of delta.tool_calls.
Result<AnswerCall> read_call(const Json& piece) {
  if (!piece.is_object()) return wrong("tool_calls", "objects", piece);
  AnswerCall call;
  if (const Json* const index = member(piece, "index"); index != nullptr && !index->is_null()) {
    if (!index->is_number_integer()) return wrong("tool_calls.index", "an integer", *index);
    call.index = index->get<int64_t>();
  }
  ESPALIER_ASSIGN(call.id, text_member(piece, "id", "tool_calls.id"));
  ESPALIER_ASSIGN(call.type, text_member(piece, "type", "tool_calls.type"));
  const Json* const function = member(piece, "function");
  if (function == nullptr || function->is_null()) return call;
  if (!function->is_object()) return wrong("tool_calls.function", "an object", *function);
  ESPALIER_ASSIGN(call.name, text_member(*function, "name", "tool_calls.function.name"));
  ESPALIER_ASSIGN(call.arguments, text_member(*function, "arguments", "tool_calls.function.arguments"));
  return call;
}

void merge(std::vector<AnswerCall>& calls, const AnswerCall& piece) {
  auto call = std::lower_bound(calls.begin(), calls.end(), piece.index, [](const AnswerCall& known, int64_t index) { return known.index < index; });
  if (call == calls.end() || call->index != piece.index) call = calls.insert(call, {.index = piece.index});
  replace_if_given(call->id, piece.id);
  replace_if_given(call->type, piece.type);
  replace_if_given(call->name, piece.name);
  call->arguments += piece.arguments;
}

// The count of that name in an object of counts; nothing where it is absent.
Status read_count(const Json& counts, std::string_view key, std::optional<int64_t>& count) {
  const Json* const value = member(counts, key);
  if (value == nullptr || value->is_null()) return Ok{};
  if (!value->is_number_integer() || value->get<int64_t>() < 0) return wrong(key, "a count", *value);
  count = value->get<int64_t>();
  return Ok{};
}

std::string one_line(std::string_view text) {
  std::string line = replace_invalid_utf8(text.substr(0, kMaxErrorWords));
  std::replace_if(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text.size() > kMaxErrorWords ? line + "..." : line;
}

// The text of an error in one of the shapes that servers give it.
std::string words_of(const Json& error) {
  if (error.is_string()) return error.get<std::string>();
  if (!error.is_object()) return dump_json(error);
  for (const std::string_view key : {"message", "detail", "error"}) {
    if (const Json* const words = member(error, key); words != nullptr && !words->is_null()) return words_of(*words);
  }
  return dump_json(error);
}

}  // namespace

std::string error_words(std::string_view body) {
  const Result<Json> json = parse_json(body, "error");
  const Json* const error = json.ok() && json->is_object() ? member(*json, "error") : nullptr;
  if (error != nullptr) return one_line(words_of(*error));
  return one_line(json.ok() && json->is_object() ? words_of(*json) : std::string(body));
}

Result<std::string> StreamedAnswer::add(std::string_view text) {
  if (!is_valid_utf8(text)) return make_error(ErrorCode::kCorrupt, "a chunk of the stream is not valid UTF-8");
  ESPALIER_ASSIGN(const Json chunk, parse_json(text, "a chunk of the stream"));
  if (!chunk.is_object()) return wrong("the chunk", "an object", chunk);
  if (const Json* const error = member(chunk, "error"); error != nullptr && !error->is_null()) {
    return make_error(ErrorCode::kIo, "the server broke off: {}", one_line(words_of(*error)));
  }
  ++num_chunks_;
  ESPALIER_TRY(read_counts(chunk));
  const Json* const choices = member(chunk, "choices");
  if (choices == nullptr) return std::string();
  if (!choices->is_array()) return wrong("choices", "an array", *choices);
  if (choices->empty()) return std::string();
  const Json& choice = choices->front();
  if (!choice.is_object()) return wrong("choices[0]", "an object", choice);
  ESPALIER_ASSIGN(std::string finish_reason, text_member(choice, "finish_reason", "choices[0].finish_reason"));
  replace_if_given(finish_reason_, std::move(finish_reason));
  const Json* const delta = member(choice, "delta");
  if (delta == nullptr || delta->is_null()) return std::string();
  if (!delta->is_object()) return wrong("choices[0].delta", "an object or null", *delta);
  return add_delta(*delta);
}

Result<std::string> StreamedAnswer::add_delta(const Json& delta) {
  std::string shown;
  ESPALIER_TRY(text_member(delta, "role", "choices[0].delta.role"));
  ESPALIER_ASSIGN(const std::string content, text_member(delta, "content", "choices[0].delta.content"));
  ESPALIER_ASSIGN(std::string reasoning, text_member(delta, "reasoning_content", "choices[0].delta.reasoning_content"));
  ESPALIER_ASSIGN(std::string other_reasoning, text_member(delta, "reasoning", "choices[0].delta.reasoning"));
  if (reasoning.empty()) reasoning = std::move(other_reasoning);
  if (!content.empty()) {
    if (whole_.content.empty()) first_content_bytes_ = content.size();
    whole_.content += content;
    show(shown, content);
  } else if (!reasoning.empty()) {  // beside content the harness loses it
    if (whole_.reasoning.empty()) first_reasoning_bytes_ = reasoning.size();
    whole_.reasoning += reasoning;
    show(shown, reasoning);
  }
  const Json* const pieces = member(delta, "tool_calls");
  if (pieces == nullptr || pieces->is_null()) return shown;
  if (!pieces->is_array()) return wrong("choices[0].delta.tool_calls", "an array or null", *pieces);
  if (pieces->empty()) return shown;
  const bool first = !std::exchange(any_calls_, true);
  for (const Json& each : *pieces) {
    ESPALIER_ASSIGN(const AnswerCall piece, read_call(each));
    merge(whole_.calls, piece);
    if (!first) merge(calls_after_first_, piece);
    if (!piece.name.empty()) show(shown, format("{}[{}] ", at_line_start_ ? "" : "\n", piece.name));
    show(shown, piece.arguments);
  }
  return shown;
}

void StreamedAnswer::show(std::string& shown, std::string_view text) {
  shown += text;
  if (!text.empty()) at_line_start_ = text.ends_with('\n');
}

AnswerParts StreamedAnswer::after_first_chunk() const {
  AnswerParts rest = whole_;
  if (!rest.reasoning.empty()) {
    rest.reasoning.erase(0, first_reasoning_bytes_);
  } else if (!rest.content.empty()) {
    rest.content.erase(0, first_content_bytes_);
  } else {
    rest.calls = calls_after_first_;
  }
  return rest;
}

Status StreamedAnswer::read_counts(const Json& chunk) {
  if (const Json* const own = member(chunk, "espalier"); own != nullptr && own->is_object()) {
    counts_ = {};
    has_own_counts_ = true;
    ESPALIER_TRY(read_count(*own, "prompt_tokens", counts_.prompt_tokens));
    ESPALIER_TRY(read_count(*own, "cached_tokens", counts_.cached_tokens));
    ESPALIER_TRY(read_count(*own, "completion_tokens", counts_.completion_tokens));
    ESPALIER_ASSIGN(counts_.cold_reason, text_member(*own, "cold_reason", "espalier.cold_reason"));
    return Ok{};
  }
  const Json* const usage = member(chunk, "usage");
  if (has_own_counts_ || usage == nullptr || !usage->is_object()) return Ok{};
  ESPALIER_TRY(read_count(*usage, "prompt_tokens", counts_.prompt_tokens));
  ESPALIER_TRY(read_count(*usage, "completion_tokens", counts_.completion_tokens));
  const Json* const details = member(*usage, "prompt_tokens_details");
  if (details != nullptr && details->is_object()) ESPALIER_TRY(read_count(*details, "cached_tokens", counts_.cached_tokens));
  return Ok{};
}

}  // namespace espalier
