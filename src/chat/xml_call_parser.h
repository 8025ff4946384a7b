// Tool calls in the form
//
//   <tool_call>
//   <function=NAME>
//   <parameter=KEY>
//   VALUE
//   </parameter>
//   </function>
//   </tool_call>
//
// found as text, never parsed as XML: a value may hold anything. Closing tags end a value if another parameter, another call or the end of
// the reply follows them; where text does, only if no others come before the next call. A whole call inside a value belongs to the value.
// Missing tags are forgiven where what stands instead leaves no doubt. See CallParser.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "chat/call_parser.h"
#include "chat/tool_schemas.h"
#include "chat/xml_call_lexer.h"

namespace espalier {

class XmlCallParser final : public CallParser {
 public:
  XmlCallParser(DeltaWriter& deltas, std::shared_ptr<const ToolSchemas> tools) : CallParser(deltas), tools_(std::move(tools)) {}

  void feed(std::string_view text) override;
  void finish() override;

 private:
  // Closing tags with nothing but whitespace between them: they end the open value if what follows can only stand outside of it.
  struct Closing {
    size_t value_end = 0;
    size_t end = 0;
    bool begins_line = false;
    bool parameter = false;                  // </parameter> is among them, first
    bool function = false;                   // </function>
    bool call = false;                       // </tool_call>
    std::optional<size_t> doubled_from = {};  // where the first of several </parameter> begins

    bool closes_call() const { return function || call; }
    // Whether it looks like an end even where text follows: such text stands more often behind a call than inside a value.
    bool is_likely() const { return parameter ? closes_call() : begins_line && function && call; }
  };
  // Whole calls inside the open value.
  struct Nest {
    int depth = 0;
    bool opening = false;                 // the last token was <function=...>: a level, if a parameter or </function> follows
    bool wrapped = false;                 // the outermost stands in a <tool_call> of its own
    bool unwrapped = false;               // ... which is still to be closed
    std::optional<size_t> tail = {};      // where a </parameter> begins behind which only closing tags stood so far
    bool tail_has_end = false;            // </function> or </tool_call> among them
  };

  void drain();
  void take(const XmlToken& token);
  void take_between_calls(const XmlToken& token);
  void take_in_body(const XmlToken& token);
  void take_in_value(const XmlToken& token);
  void take_in_nest(const XmlToken& token);
  void take_closer(const XmlToken& token);
  void take_end_in_value(const XmlToken& token);

  bool opens_call(const XmlToken& token, bool wrapped) const;
  void begin_call(const XmlToken& token, size_t from);
  void end_call();
  void begin_value(const XmlToken& token);
  void end_value(size_t end);
  void leave_value(const Closing& closing);
  void doubt_closing();

  void pass_text(size_t end);
  void pass_undecided_text();
  void pass_markup(const XmlToken& token);
  bool begins_line(const XmlToken& token) const;

  std::shared_ptr<const ToolSchemas> tools_;
  XmlCallLexer lexer_;
  enum class Where { kBetweenCalls, kBody, kValue } where_ = Where::kBetweenCalls;
  size_t passed_ = 0;                  // what stands before is decided
  std::optional<size_t> wrapper_ = {};  // an undecided <tool_call> begins here, followed by whitespace so far
  bool held_ = false;                  // a call without a usable name: text, unless a call follows it
  std::string function_;
  std::string key_;
  size_t value_begin_ = 0;
  std::optional<Closing> closing_ = {};
  std::optional<Closing> doubted_ = {};     // the first likely one that text followed: it counts if no other comes before the next call
  std::optional<XmlToken> call_open_ = {};  // the last token in the value, if that was <tool_call>
  Nest nest_;
};

}  // namespace espalier
