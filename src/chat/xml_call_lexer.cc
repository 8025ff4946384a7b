#include "chat/xml_call_lexer.h"

#include <algorithm>
#include <array>

#include "chat/reply_text.h"

namespace espalier {
namespace {

using Kind = XmlToken::Kind;

constexpr std::string_view kParameterOpener = "<parameter=";

struct Tag {
  Kind kind;
  std::string_view text;
};
constexpr std::array<Tag, 6> kTags{{{Kind::kCallOpen, kCallOpener},
                                    {Kind::kCallClose, "</tool_call>"},
                                    {Kind::kFunctionOpen, kFunctionOpener},
                                    {Kind::kFunctionClose, "</function>"},
                                    {Kind::kParameterOpen, kParameterOpener},
                                    {Kind::kParameterClose, "</parameter>"}}};

}  // namespace

XmlToken XmlCallLexer::token(Kind kind, size_t end) {
  const XmlToken token{.kind = kind, .begin = at_, .end = end};
  at_ = end;
  return token;
}

std::optional<XmlToken> XmlCallLexer::end_token() {
  ended_ = true;
  return token(Kind::kEnd, text_.size());
}

std::optional<XmlToken> XmlCallLexer::next() {
  if (ended_ || (at_ == text_.size() && !finished_)) return std::nullopt;
  if (at_ == text_.size()) return end_token();
  if (text_[at_] != '<') return token(Kind::kText, std::min(text_.find('<', at_), text_.size()));
  for (const Tag& tag : kTags) {
    const TagMatch match = match_tag(std::string_view(text_).substr(at_), tag.text);
    if (match == TagMatch::kNone) continue;
    if (match == TagMatch::kPartial) return finished_ ? end_token() : std::nullopt;
    const size_t behind = at_ + tag.text.size();
    if (tag.text.back() == '>') return token(tag.kind, behind);
    const size_t end = text_.find_first_of("><\n", std::max(behind, searched_));
    if (end != std::string::npos) return text_[end] == '>' ? token(tag.kind, end + 1) : token(Kind::kText, end);
    searched_ = text_.size();
    return finished_ ? end_token() : std::nullopt;
  }
  return token(Kind::kText, std::min(text_.find('<', at_ + 1), text_.size()));
}

std::string_view XmlCallLexer::name(const XmlToken& token) const {
  const size_t opener = token.kind == Kind::kFunctionOpen ? kFunctionOpener.size() : kParameterOpener.size();
  return text(token.begin + opener, token.end - 1);
}

}  // namespace espalier
