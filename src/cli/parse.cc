// espalier parse MODEL --tools TOOLS.json < text: what a reply of the model says, as reasoning, content and tool calls.
#include <memory>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"
#include "chat/prompt.h"
#include "chat/reply_parser.h"
#include "chat/tool_schemas.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace espalier {
namespace {

constexpr size_t kMaxInput = size_t{64} << 20;

struct ParseFlags {
  std::string model, tools;
  bool thinking = false;
  bool cuts = false;
};

void add(const std::vector<ReplyDelta>& deltas, ParsedReply& reply) {
  for (const ReplyDelta& delta : deltas) reply.add(delta);
}

// The arguments of a call so far as an object: those of an open call lack the closing brace.
std::string closed_arguments(const std::string& arguments) {
  if (arguments.empty()) return "{}";
  return parse_json(arguments, "arguments").ok() ? arguments : arguments + "}";
}

// Arguments go out as they are, so that numbers stay as the model wrote them.
std::string reply_members(const ParsedReply& reply) {
  std::string out = "\"content\":" + dump_json(reply.content) + ",\"reasoning\":" + dump_json(reply.reasoning) + ",\"tool_calls\":[";
  for (const ParsedCall& call : reply.calls) {
    if (&call != &reply.calls.front()) out += ',';
    out += "{\"name\":" + dump_json(call.name) + ",\"arguments\":" + closed_arguments(call.arguments) + "}";
  }
  return out + "]";
}

Status print_cuts(std::string_view text, const ReplyParserOptions& options) {
  ReplyParser parser(options);
  ParsedReply reply;
  for (size_t bytes = 0;;) {
    ESPALIER_TRY(print("{\"bytes\":" + std::to_string(bytes) + "," + reply_members(reply) + "}\n"));
    if (bytes == text.size()) return Ok{};
    const size_t length = decode_utf8(text, bytes).length;
    add(parser.feed(text.substr(bytes, length)), reply);
    bytes += length;
  }
}

Status parse(const ParseFlags& flags) {
  ESPALIER_ASSIGN(const auto chat_template, ChatTemplate::load(flags.model));
  ReplyParserOptions options{.format = chat_template->tool_call_format(), .starts_in_reasoning = flags.thinking};
  if (!flags.tools.empty()) {
    ESPALIER_ASSIGN(const Json tools, load_json(flags.tools));
    if (!tools.is_array()) return Error{ErrorCode::kInvalidArgument, flags.tools + ": expected a list of tools, found " + tools.type_name()};
    options.tools = std::make_shared<const ToolSchemas>(tools);
  }
  ESPALIER_ASSIGN(const std::string text, read_stdin(kMaxInput));
  if (flags.cuts) return print_cuts(text, options);
  return print("{" + reply_members(parse_reply(text, options)) + "}\n");
}

}  // namespace

RegisteredCommand add_parse_command(CLI::App& root) {
  auto flags = std::make_shared<ParseFlags>();
  CLI::App* app = root.add_subcommand("parse", "Read a reply from stdin: {\"content\": ..., \"reasoning\": ..., \"tool_calls\": [...]}");
  app->add_option("model", flags->model, "Directory of the checkpoint (its template)")->required();
  app->add_option("--tools", flags->tools, "JSON file: the list of tools of the request; without one there are no calls");
  app->add_flag("--thinking", flags->thinking, "The prompt ended inside a think block");
  app->add_flag("--cuts", flags->cuts, "One line for every number of whole characters: what may be sent once they have arrived");
  return {app, [flags] { return finish(parse(*flags)); }};
}

}  // namespace espalier
