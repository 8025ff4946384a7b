// Cuts a reply into the tags of the XML form of tool calls and the text between them, while it arrives. Every byte is looked at a bounded
// number of times, however the text was cut. Not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace espalier {

// Bytes [begin, end) of the reply.
struct XmlToken {
  enum class Kind {
    kText,            // a stretch without tags; one stretch may come as several
    kCallOpen,        // <tool_call>
    kCallClose,       // </tool_call>
    kFunctionOpen,    // <function=NAME>
    kFunctionClose,   // </function>
    kParameterOpen,   // <parameter=NAME>
    kParameterClose,  // </parameter>
    kEnd,             // of the reply, with what has arrived of a tag that it cut
  };
  Kind kind = Kind::kText;
  size_t begin = 0;
  size_t end = 0;
};

inline constexpr std::string_view kCallOpener = "<tool_call>";
inline constexpr std::string_view kFunctionOpener = "<function=";

class XmlCallLexer {
 public:
  void append(std::string_view text) { text_ += text; }
  void finish() { finished_ = true; }
  // The next token; empty if that depends on text to come, and behind kEnd.
  std::optional<XmlToken> next();
  // What has arrived of a tag that is not whole, or of what only looks like one.
  std::string_view undecided() const { return std::string_view(text_).substr(at_); }

  size_t size() const { return text_.size(); }
  std::string_view text(const XmlToken& token) const { return text(token.begin, token.end); }
  std::string_view text(size_t begin, size_t end) const { return std::string_view(text_).substr(begin, end - begin); }
  // Of kFunctionOpen and kParameterOpen. Without ">", "<" and line breaks, which end the tag or show that it is none.
  std::string_view name(const XmlToken& token) const;

 private:
  XmlToken token(XmlToken::Kind kind, size_t end);
  std::optional<XmlToken> end_token();

  std::string text_;
  size_t at_ = 0;        // where the next token begins
  size_t searched_ = 0;  // the name of a tag at `at_` does not end before this
  bool finished_ = false;
  bool ended_ = false;
};

}  // namespace espalier
