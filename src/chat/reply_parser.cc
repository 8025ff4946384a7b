#include "chat/reply_parser.h"

#include <optional>
#include <utility>

#include "base/utf8.h"
#include "chat/call_parser.h"
#include "chat/delta_writer.h"
#include "chat/json_call_parser.h"
#include "chat/reasoning_splitter.h"
#include "chat/tool_schemas.h"
#include "chat/xml_call_parser.h"

namespace espalier {
namespace {

// Without tools everything is content.
class NoCallParser final : public CallParser {
 public:
  using CallParser::CallParser;
  void feed(std::string_view text) override { outside_.add(text); }
  void finish() override { outside_.finish(); }
};

std::unique_ptr<CallParser> make_call_parser(const ReplyParserOptions& options, DeltaWriter& deltas) {
  const bool has_tools = options.tools != nullptr && !options.tools->empty();
  if (has_tools && options.format == ToolCallFormat::kXmlFunction) return std::make_unique<XmlCallParser>(deltas, options.tools);
  if (has_tools && options.format == ToolCallFormat::kJsonFunction) return std::make_unique<JsonCallParser>(deltas, options.tools);
  return std::make_unique<NoCallParser>(deltas);
}

}  // namespace

struct ReplyParser::State {
  explicit State(const ReplyParserOptions& options) : calls(make_call_parser(options, deltas)) {
    if (options.starts_in_reasoning) splitter.emplace(options.format == ToolCallFormat::kJsonFunction ? "{" : "<function");
  }

  // Valid UTF-8, whole characters.
  void feed(std::string_view text) {
    if (!splitter) return calls->feed(text);
    const ReasoningSplitter::Pieces pieces = splitter->feed(text);
    deltas.reasoning(pieces.reasoning);
    if (!pieces.rest.empty()) calls->feed(pieces.rest);
  }

  void finish() {
    if (splitter) {
      const ReasoningSplitter::Pieces pieces = splitter->finish();
      deltas.reasoning(pieces.reasoning);
    }
    calls->finish();
  }

  DeltaWriter deltas;
  std::string cut_character;  // the text so far ends inside it
  std::optional<ReasoningSplitter> splitter;
  std::unique_ptr<CallParser> calls;
};

ReplyParser::ReplyParser(ReplyParserOptions options) : state_(std::make_unique<State>(options)) {}
ReplyParser::~ReplyParser() = default;
ReplyParser::ReplyParser(ReplyParser&&) noexcept = default;

std::vector<ReplyDelta> ReplyParser::feed(std::string_view text) {
  std::string joined;
  if (!state_->cut_character.empty()) {
    joined = std::exchange(state_->cut_character, {});
    joined += text;
    text = joined;
  }
  const size_t cut = incomplete_utf8_suffix(text);
  state_->cut_character = text.substr(text.size() - cut);
  text.remove_suffix(cut);
  if (is_valid_utf8(text)) {
    state_->feed(text);
  } else {
    state_->feed(replace_invalid_utf8(text));
  }
  return state_->deltas.take();
}

std::vector<ReplyDelta> ReplyParser::finish() {
  if (!state_->cut_character.empty()) state_->feed(replace_invalid_utf8(std::exchange(state_->cut_character, {})));
  state_->finish();
  return state_->deltas.take();
}

const std::string& ReplyParser::unplaced_text() const { return state_->calls->unplaced_text(); }

void ParsedReply::add(const ReplyDelta& delta) {
  switch (delta.kind) {
    case ReplyDelta::Kind::kReasoning: reasoning += delta.text; return;
    case ReplyDelta::Kind::kContent: content += delta.text; return;
    case ReplyDelta::Kind::kCallBegin: calls.push_back({.name = delta.text}); return;
    case ReplyDelta::Kind::kCallArguments: calls.at(static_cast<size_t>(delta.call)).arguments += delta.text; return;
    case ReplyDelta::Kind::kCallEnd: calls.at(static_cast<size_t>(delta.call)).complete = true; return;
  }
}

ParsedReply parse_reply(std::string_view text, const ReplyParserOptions& options) {
  ReplyParser parser(options);
  ParsedReply reply;
  for (const ReplyDelta& delta : parser.feed(text)) reply.add(delta);
  for (const ReplyDelta& delta : parser.finish()) reply.add(delta);
  return reply;
}

}  // namespace espalier
