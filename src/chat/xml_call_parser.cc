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
  closer_.reset();
  behind_call_open_ = false;
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
  const bool behind_call_open = std::exchange(behind_call_open_, token.kind == Kind::kCallOpen);
  std::optional<size_t> doubled_from;
  if (closer_) {
    if (token.kind == Kind::kCallOpen && !closer_->call_open) {
      closer_->call_open = token;
      return;
    }
    const Closer closer = *std::exchange(closer_, std::nullopt);
    if (closes(closer, token)) return leave_value(closer, token);
    if (token.kind == Kind::kParameterClose && closer.tag.kind == Kind::kParameterClose && !closer.call_open) {
      doubled_from = closer.doubled_from.value_or(closer.value_end);
    }
    if (token.kind == Kind::kCallClose && closer.tag.kind == Kind::kFunctionClose && !closer.call_open) {
      closer_ = Closer{.tag = token, .value_end = closer.value_end};
      return;
    }
  }
  if (std::exchange(nest_.opening, false) && (token.kind == Kind::kParameterOpen || token.kind == Kind::kFunctionClose)) {
    if (nest_.depth++ == 0) nest_.unwrapped = nest_.wrapped;
  }
  if (token.kind == Kind::kFunctionOpen) {
    nest_.opening = true;
    if (nest_.depth == 0) nest_.wrapped = behind_call_open;
  }
  if (nest_.depth > 0) return take_in_nest(token);

  const bool closes_nest = std::exchange(nest_.unwrapped, false);
  if (token.kind != Kind::kCallClose) nest_.tail.reset();
  switch (token.kind) {
    case Kind::kParameterClose:
      closer_ = Closer{.tag = token, .value_end = token.begin, .doubled_from = doubled_from};
      return;
    case Kind::kFunctionClose:
      closer_ = Closer{.tag = token, .value_end = token.begin};
      return;
    case Kind::kCallClose:
      if (nest_.tail) nest_.tail_has_end = true;
      if (!closes_nest) closer_ = Closer{.tag = token, .value_end = token.begin};
      return;
    case Kind::kParameterOpen: {
      const bool first_of_line = token.begin == value_begin_ || lexer_.text(token.begin - 1, token.begin) == "\n";
      if (!first_of_line || !tools_->takes(function_, lexer_.name(token))) return;
      end_value(token.begin);
      return take_in_body(token);
    }
    case Kind::kText:
    case Kind::kCallOpen:
    case Kind::kFunctionOpen:
    case Kind::kEnd: return;
  }
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

// A </function> or </tool_call> that is to end a value without </parameter> before it says less than one that has.
bool XmlCallParser::closes(const Closer& closer, const XmlToken& token) const {
  if (token.kind == Kind::kFunctionOpen && opens_call(token, closer.call_open.has_value())) return true;
  if (closer.call_open) return false;
  switch (closer.tag.kind) {
    case Kind::kParameterClose:
      return token.kind == Kind::kParameterOpen || token.kind == Kind::kFunctionClose || token.kind == Kind::kCallClose;
    case Kind::kFunctionClose: return token.kind == Kind::kCallClose && begins_line(closer.tag);
    default: return false;
  }
}

void XmlCallParser::leave_value(const Closer& closer, const XmlToken& token) {
  const bool doubled = closer.doubled_from && (token.kind == Kind::kCallClose || token.kind == Kind::kEnd);
  end_value(doubled ? *closer.doubled_from : closer.value_end);
  outside_.markup();
  passed_ = closer.tag.end;
  if (closer.tag.kind != Kind::kParameterClose) end_call();
  if (closer.call_open) take(*closer.call_open);
  take(token);
}

void XmlCallParser::take_end_in_value(const XmlToken& token) {
  const std::string_view cut_tag = lexer_.text(token);
  if (nest_.tail && cut_tag.empty()) {  // calls inside the value that were not whole: the reply's last closing tags are its own
    end_value(*nest_.tail);
    outside_.markup();
    passed_ = token.end;
    if (nest_.tail_has_end) end_call();
  } else if (closer_) {
    return leave_value(*std::exchange(closer_, std::nullopt), token);
  } else {
    const bool cut_closer = !cut_tag.empty() && std::string_view("</").starts_with(cut_tag.substr(0, 2)) && begins_line(token);
    end_value(cut_closer ? token.begin : token.end);
  }
  take(token);
}

}  // namespace espalier
