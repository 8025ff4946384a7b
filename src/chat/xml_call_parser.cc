#include "chat/xml_call_parser.h"

#include <utility>

#include "base/log.h"
#include "chat/literal_reader.h"
#include "chat/reply_text.h"

namespace espalier {

using Kind = XmlToken::Kind;

void XmlCallParser::feed(std::string_view text) {
  lexer_.append(text);
  drain();
}

void XmlCallParser::finish() {
  lexer_.finish();
  drain();
}

void XmlCallParser::drain() {
  while (const std::optional<XmlToken> token = lexer_.next()) take(*token);
  if (!outside_.calls_begun()) pass_undecided_text();
}

// Before the first call, a tag that opens none is text as soon as it begins.
void XmlCallParser::pass_undecided_text() {
  const std::string_view tag = lexer_.undecided();
  if (match_tag(tag, kCallOpener) != TagMatch::kNone || match_tag(tag, kFunctionOpener) != TagMatch::kNone) return;
  wrapper_.reset();
  pass_text(lexer_.size());
}

void XmlCallParser::take(const XmlToken& token) {
  switch (where_) {
    case Where::kBetweenCalls: return take_between_calls(token);
    case Where::kBody: return take_in_body(token);
    case Where::kValue: return take_in_value(token);
  }
}

// Text up to `end` stands outside calls, or between the parameters of one.
void XmlCallParser::pass_text(size_t end) {
  if (held_ || end <= passed_) return;
  outside_.add(lexer_.text(passed_, end));
  passed_ = end;
}

void XmlCallParser::pass_markup(const XmlToken& token) {
  wrapper_.reset();
  pass_text(token.begin);
  outside_.markup();
  passed_ = token.end;
}

void XmlCallParser::take_between_calls(const XmlToken& token) {
  switch (token.kind) {
    case Kind::kText:
      if (wrapper_) {
        if (is_blank(lexer_.text(token))) return;
        if (lexer_.text(token).starts_with(kFunctionOpener)) held_ = !outside_.calls_begun();
        wrapper_.reset();
      }
      return pass_text(token.end);
    case Kind::kCallOpen:
      pass_text(token.begin);
      wrapper_ = token.begin;
      return;
    case Kind::kFunctionOpen: {
      const std::optional<size_t> wrapper = std::exchange(wrapper_, std::nullopt);
      if (opens_call(token, wrapper.has_value())) return begin_call(token, wrapper.value_or(token.begin));
      if (wrapper) {
        log_debug("reply: '{}' is no name of a function; the call stays text", lexer_.name(token));
        held_ = !outside_.calls_begun();
      }
      return pass_text(token.end);
    }
    case Kind::kEnd:
      held_ = false;
      pass_text(token.end);
      return outside_.finish();
    case Kind::kCallClose:
      if (!wrapper_ && outside_.beside_markup()) return pass_markup(token);
      [[fallthrough]];
    case Kind::kFunctionClose:
    case Kind::kParameterOpen:
    case Kind::kParameterClose:
      wrapper_.reset();
      return pass_text(token.end);
  }
}

void XmlCallParser::take_in_body(const XmlToken& token) {
  switch (token.kind) {
    case Kind::kParameterOpen: return begin_value(token);
    case Kind::kParameterClose: return pass_markup(token);
    case Kind::kFunctionClose:
    case Kind::kCallClose:
      pass_markup(token);
      return end_call();
    case Kind::kEnd:
      deltas_.break_off_call();
      where_ = Where::kBetweenCalls;
      return take_between_calls(token);
    case Kind::kText:
    case Kind::kCallOpen:
    case Kind::kFunctionOpen: return take_between_calls(token);
  }
}

bool XmlCallParser::opens_call(const XmlToken& token, bool wrapped) const {
  const std::string_view name = lexer_.name(token);
  return tools_->declares(name) || (wrapped && is_function_name(name));
}

void XmlCallParser::begin_call(const XmlToken& token, size_t from) {
  held_ = false;
  pass_text(from);
  if (where_ == Where::kBody) end_call();
  outside_.begin_call();
  passed_ = token.end;
  function_ = lexer_.name(token);
  deltas_.begin_call(function_);
  where_ = Where::kBody;
}

void XmlCallParser::end_call() {
  deltas_.end_call();
  where_ = Where::kBetweenCalls;
}

void XmlCallParser::begin_value(const XmlToken& token) {
  pass_markup(token);
  key_ = lexer_.name(token);
  value_begin_ = token.end;
  closing_.reset();
  doubted_.reset();
  call_open_.reset();
  nest_ = {};
  where_ = Where::kValue;
}

void XmlCallParser::end_value(size_t end) {
  std::string_view value = lexer_.text(value_begin_, end);
  if (value.starts_with('\n')) value.remove_prefix(1);
  if (value.ends_with('\n')) value.remove_suffix(1);
  deltas_.member(json_quoted(key_), tools_->coerce(function_, key_, value));
  passed_ = end;
  where_ = Where::kBody;
}

// Only whitespace between the tag and the beginning of its line, of the value, or another tag.
bool XmlCallParser::begins_line(const XmlToken& token) const {
  const std::string_view before = lexer_.text(value_begin_, token.begin);
  const size_t last = before.find_last_not_of(" \t");
  return last == std::string_view::npos || before[last] == '\n' || before[last] == '>';
}

void XmlCallParser::take_in_value(const XmlToken& token) {
  if (token.kind == Kind::kText && is_blank(lexer_.text(token))) return;
  if (token.kind == Kind::kEnd) return take_end_in_value(token);
  const std::optional<XmlToken> call_open = std::exchange(call_open_, std::nullopt);
  if (token.kind == Kind::kCallOpen) call_open_ = token;

  const bool ends_value = closing_ || (doubted_ && nest_.depth == 0);
  if (ends_value && token.kind == Kind::kFunctionOpen && opens_call(token, call_open.has_value())) {
    leave_value(closing_ ? *closing_ : *doubted_);
    if (call_open) take(*call_open);
    return take(token);
  }
  if (closing_ && token.kind == Kind::kParameterOpen && !closing_->closes_call() && !call_open) {
    leave_value(*closing_);
    return take(token);
  }
  const bool is_closer = token.kind == Kind::kParameterClose || token.kind == Kind::kFunctionClose || token.kind == Kind::kCallClose;
  if (call_open || !(is_closer || token.kind == Kind::kCallOpen)) doubt_closing();

  if (std::exchange(nest_.opening, false) && (token.kind == Kind::kParameterOpen || token.kind == Kind::kFunctionClose)) {
    if (nest_.depth++ == 0) nest_.unwrapped = nest_.wrapped;
  }
  if (token.kind == Kind::kFunctionOpen) {
    nest_.opening = true;
    if (nest_.depth == 0) nest_.wrapped = call_open.has_value();
  }
  if (nest_.depth > 0) return take_in_nest(token);

  const bool closes_nest = std::exchange(nest_.unwrapped, false) && token.kind == Kind::kCallClose;
  if (token.kind == Kind::kCallClose) {
    nest_.tail_has_end = true;
  } else {
    nest_.tail.reset();
  }
  if (is_closer && !closes_nest) return take_closer(token);
  const bool begins_parameter = token.kind == Kind::kParameterOpen && tools_->takes(function_, lexer_.name(token)) &&
                                (token.begin == value_begin_ || lexer_.text(token.begin - 1, token.begin) == "\n");
  if (begins_parameter) {  // </parameter> was forgotten
    end_value(token.begin);
    take(token);
  }
}

void XmlCallParser::take_closer(const XmlToken& token) {
  const bool repeats_order = closing_ && closing_->closes_call() && token.kind == Kind::kParameterClose;
  if (repeats_order) doubt_closing();
  if (!closing_) closing_ = Closing{.value_end = token.begin, .begins_line = begins_line(token)};
  closing_->end = token.end;
  if (token.kind == Kind::kFunctionClose) closing_->function = true;
  if (token.kind == Kind::kCallClose) closing_->call = true;
  if (token.kind == Kind::kParameterClose) {
    if (closing_->parameter && !closing_->doubled_from) closing_->doubled_from = closing_->value_end;
    closing_->parameter = true;
    closing_->value_end = token.begin;
  }
}

// What follows the closing tags does not show that they are the call's own.
void XmlCallParser::doubt_closing() {
  if (closing_ && closing_->is_likely() && !doubted_) doubted_ = closing_;
  closing_.reset();
}

void XmlCallParser::take_in_nest(const XmlToken& token) {
  switch (token.kind) {
    case Kind::kParameterClose:
      nest_.tail = token.begin;
      nest_.tail_has_end = false;
      return;
    case Kind::kFunctionClose:
      if (!begins_line(token)) break;  // text of a value in there
      --nest_.depth;
      nest_.tail_has_end = true;
      return;
    case Kind::kCallClose: nest_.tail_has_end = true; return;
    default: break;
  }
  nest_.tail.reset();
}

void XmlCallParser::leave_value(const Closing& closing) {
  // Where </function> is missing, a second </parameter> stands for it; before it, the first belongs to the value.
  end_value(closing.function ? closing.value_end : closing.doubled_from.value_or(closing.value_end));
  outside_.markup();
  passed_ = closing.end;
  if (closing.closes_call()) end_call();
}

void XmlCallParser::take_end_in_value(const XmlToken& token) {
  const std::string_view cut_tag = lexer_.text(token);
  if (nest_.tail && cut_tag.empty()) {  // calls inside the value that were not whole: the reply's last closing tags are its own
    leave_value({.value_end = *nest_.tail, .end = token.end, .parameter = true, .function = nest_.tail_has_end});
  } else if (closing_ || doubted_) {
    leave_value(closing_ ? *closing_ : *doubted_);
  } else {
    const bool cut_closer = !cut_tag.empty() && std::string_view("</").starts_with(cut_tag.substr(0, 2)) && begins_line(token);
    end_value(cut_closer ? token.begin : token.end);
  }
  take(token);
}

}  // namespace espalier
