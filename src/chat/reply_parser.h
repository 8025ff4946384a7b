// What a model writes, as reasoning, content and tool calls, while it is being written. A pure function of the text so far: whatever
// pieces it arrives in, the deltas add up to what the whole text gives. Nothing a model writes is an error: a call that is none stays
// text. One object a reply; not thread-safe. Takes time linear in the text, however small the pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "chat/prompt.h"

namespace espalier {

class ToolSchemas;  // chat/tool_schemas.h: names and parameter schemas of the tools of a request

struct ReplyDelta {
  enum class Kind {
    kReasoning,      // `text`: more reasoning
    kContent,        // `text`: more of the answer
    kCallBegin,      // call `call` begins; `text` is its whole name
    kCallArguments,  // `text`: more of the JSON object of its arguments; all of them together are one object
    kCallEnd,        // nothing more comes for this call
  };
  Kind kind = Kind::kContent;
  std::string text = {};
  int32_t call = -1;  // 0, 1, ... in order of appearance
};

struct ParsedCall {
  std::string name = {};
  // A JSON object once the reply is over, also of a call that is not complete: then of the parameters that had begun. Numbers as the model
  // wrote them. A parameter given twice stands in it twice; readers of JSON take the last.
  std::string arguments = {};
  bool complete = false;  // false: the reply ended inside it, or it broke off
};

// A whole reply: the sum of its deltas.
struct ParsedReply {
  std::string reasoning;
  std::string content;
  std::vector<ParsedCall> calls;

  void add(const ReplyDelta& delta);
};

struct ReplyParserOptions {
  ToolCallFormat format = ToolCallFormat::kNone;
  std::shared_ptr<const ToolSchemas> tools = {};  // null or empty: no tools were declared, nothing is parsed as a call
  bool starts_in_reasoning = false;               // the prompt ended inside an open think block
};

class ReplyParser {
 public:
  explicit ReplyParser(ReplyParserOptions options);
  ~ReplyParser();
  ReplyParser(ReplyParser&&) noexcept;

  // More text, which may end inside a character. Returns what can no longer change: no part of a tag, no part of a character (what is no
  // UTF-8 becomes U+FFFD), no whitespace before the first call that may be all there is, no parameter that may go on.
  std::vector<ReplyDelta> feed(std::string_view text);
  // The reply is over: what was held back.
  std::vector<ReplyDelta> finish();

  // Text so far that stands behind the first call and belongs to none. An answer has no field for it; worth a line in the log.
  const std::string& unplaced_text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

ParsedReply parse_reply(std::string_view text, const ReplyParserOptions& options);

}  // namespace espalier
