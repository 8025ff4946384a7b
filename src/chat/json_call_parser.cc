#include "chat/json_call_parser.h"

#include <algorithm>

#include "base/json.h"
#include "base/log.h"
#include "chat/literal_reader.h"
#include "chat/reply_text.h"

namespace espalier {
namespace {

using Event = JsonMemberScanner::Event;

constexpr std::string_view kCallOpener = "<tool_call>";
constexpr std::string_view kCallCloser = "</tool_call>";

std::optional<std::string> decoded_string(std::string_view value) {
  const std::optional<std::string> json = json_from_literal(value, LiteralDialect::kJson);
  if (!json || !json->starts_with('"')) return std::nullopt;
  const Result<Json> string = parse_json(*json, "string");
  if (!string.ok()) return std::nullopt;
  return string->get<std::string>();
}

// Any text as JSON.
std::string json_value(std::string_view text) {
  if (auto json = json_from_literal(text, LiteralDialect::kJson)) return *json;
  if (auto json = json_from_literal(text, LiteralDialect::kPython)) return *json;
  return json_quoted(trim_blanks(text));
}

// A key with its quotes, whatever stands between them.
std::string json_key(std::string_view quoted) {
  if (auto json = json_from_literal(quoted, LiteralDialect::kPython)) return *json;
  return json_quoted(quoted.substr(1, quoted.size() - 2));
}

bool is_arguments_key(const std::string& key) { return key == "arguments" || key == "parameters"; }

}  // namespace

void JsonCallParser::feed(std::string_view text) {
  text_ += text;
  const auto take = [this] {
    switch (where_) {
      case Where::kText: return take_text();
      case Where::kBehindOpener: return take_opener();
      case Where::kCall: return call_->arguments ? take_arguments() : take_object();
    }
    return false;
  };
  while (take()) {
  }
}

void JsonCallParser::finish() {
  if (where_ == Where::kCall && call_->begun) deltas_.break_off_call();
  pass_text(text_.size());
  outside_.finish();
}

void JsonCallParser::pass_text(size_t end) {
  if (end <= passed_) return;
  outside_.add(std::string_view(text_).substr(passed_, end - passed_));
  passed_ = end;
}

void JsonCallParser::pass_markup(size_t end) {
  outside_.markup();
  at_ = passed_ = end;
}

bool JsonCallParser::take_text() {
  const size_t tag = std::min(text_.find('<', at_), text_.size());
  pass_text(tag);
  at_ = tag;
  if (tag == text_.size()) return false;
  const std::string_view rest = std::string_view(text_).substr(tag);
  const TagMatch opener = match_tag(rest, kCallOpener);
  const TagMatch closer = outside_.beside_markup() ? match_tag(rest, kCallCloser) : TagMatch::kNone;
  if (opener == TagMatch::kFull) {
    at_ = tag + kCallOpener.size();
    where_ = Where::kBehindOpener;
  } else if (closer == TagMatch::kFull) {
    pass_markup(tag + kCallCloser.size());
  } else if (opener == TagMatch::kPartial || closer == TagMatch::kPartial) {
    return false;
  } else {
    at_ = tag + 1;
  }
  return true;
}

bool JsonCallParser::take_opener() {
  at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
  if (at_ == text_.size()) return false;
  if (text_[at_] == '{') {
    call_.emplace(OpenCall{.object = JsonMemberScanner(at_ + 1)});
    where_ = Where::kCall;
  } else {
    where_ = Where::kText;
  }
  return true;
}

bool JsonCallParser::take_object() {
  JsonMemberScanner& object = call_->object;
  switch (object.next(text_)) {
    case Event::kNeedsMore: return false;
    case Event::kObjectBegins:
      if (call_->begun && !call_->has_arguments && is_arguments_key(decoded_string(object.key(text_)).value_or(""))) {
        call_->has_arguments = true;
        passed_ = object.value_begin() + 1;
        call_->arguments.emplace(passed_);
      }
      return true;
    case Event::kMember:
      if (!take_call_member()) break_off_call(object.at());
      return true;
    case Event::kEnd:
      if (!call_->begun) {
        break_off_call(object.at());
      } else {
        pass_markup(object.at());
        end_call();
      }
      return true;
    case Event::kBroken: break_off_call(object.at()); return true;
  }
  return false;
}

bool JsonCallParser::take_call_member() {
  const std::string key = decoded_string(call_->object.key(text_)).value_or("");
  const std::string_view value = call_->object.value(text_);
  if (key == "name" && !call_->begun) {
    const std::string name = decoded_string(value).value_or("");
    if (!tools_->declares(name) && !is_function_name(name)) {
      log_debug("reply: '{}' is no name of a function; the call stays text", name);
      return false;
    }
    call_->begun = true;
    outside_.begin_call();
    deltas_.begin_call(name);
    if (call_->early_arguments) take_whole_arguments(*call_->early_arguments);
  } else if (is_arguments_key(key) && !call_->has_arguments) {
    if (call_->begun) {
      take_whole_arguments(value);
    } else {
      call_->early_arguments = value;
    }
  }
  if (call_->begun) passed_ = call_->object.at();
  return true;
}

// Arguments that are not read while they arrive: those before the name, those written as a string, and what are none.
void JsonCallParser::take_whole_arguments(std::string_view value) {
  call_->has_arguments = true;
  std::string json = json_value(decoded_string(value).value_or(std::string(value)));
  if (json.starts_with('{')) {
    deltas_.arguments(json);
  } else if (json != "null") {
    log_debug("reply: arguments of a call that are no object: {}", json);
    outside_.add(value);
  }
}

bool JsonCallParser::take_arguments() {
  JsonMemberScanner& members = *call_->arguments;
  switch (members.next(text_)) {
    case Event::kNeedsMore: return false;
    case Event::kObjectBegins: return true;
    case Event::kMember:
      deltas_.member(json_key(members.key(text_)), json_value(members.value(text_)));
      passed_ = members.at();
      return true;
    case Event::kEnd:
      passed_ = members.at();
      call_->object.resume_at(members.at());
      call_->arguments.reset();
      return true;
    case Event::kBroken: break_off_call(members.at()); return true;
  }
  return false;
}

void JsonCallParser::end_call() {
  deltas_.end_call();
  call_.reset();
  where_ = Where::kText;
}

// What was taken for a call up to `at` is none, or none any more.
void JsonCallParser::break_off_call(size_t at) {
  if (call_->begun) deltas_.break_off_call();
  call_.reset();
  where_ = Where::kText;
  at_ = at;
}

}  // namespace espalier
