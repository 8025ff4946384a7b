// Any bytes as a reply with tool calls, in both forms: in pieces it says what it says whole, arguments are JSON objects, and nothing but
// tags is lost: what is neither reasoning nor content, name, key nor value is among the text kept aside.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "chat/reply_text.h"
#include "chat/tool_schemas.h"
#include "fuzz/reply_cuts.h"

namespace espalier {
namespace {

std::shared_ptr<const ToolSchemas> tools(std::string_view json) {
  return std::make_shared<const ToolSchemas>(parse_json(json, "tools").value());
}

using Counts = std::array<int64_t, 256>;

void count(std::string_view text, Counts& counts) {
  for (const char c : text) ++counts[static_cast<unsigned char>(c)];
}

// The strings of JSON text, decoded: keys too, and also those of keys that occur twice.
void count_strings(std::string_view json, Counts& counts) {
  for (size_t at = json.find('"'); at != std::string_view::npos; at = json.find('"', at)) {
    size_t end = at + 1;
    while (json[end] != '"') end += json[end] == '\\' ? 2 : 1;
    count(parse_json(json.substr(at, end + 1 - at), "string")->get<std::string>(), counts);
    at = end + 1;
  }
}

Counts count_tags(std::string_view text) {
  Counts counts{};
  for (const std::string_view tag :
       {"<tool_call>", "</tool_call>", "<function=", "</function>", "<parameter=", "</parameter>", "<think>", "</think>"}) {
    for (size_t at = text.find(tag); at != std::string_view::npos; at = text.find(tag, at + tag.size())) {
      count(tag, counts);
      if (tag.ends_with('=')) count(">", counts);
    }
  }
  return counts;
}

void check_nothing_lost(std::string_view input, const fuzz::ReadReply& read) {
  const std::string text = replace_invalid_utf8(input);
  Counts before{}, after{};
  count(text, before);
  count(read.reply.reasoning, after);
  count(read.reply.content, after);
  count(read.unplaced, after);
  for (const ParsedCall& call : read.reply.calls) {
    count(call.name, after);
    count_strings(call.arguments, after);
  }
  const Counts tags = count_tags(text);
  for (size_t c = 0; c < before.size(); ++c) {
    if (kBlanks.find(static_cast<char>(c)) != std::string_view::npos) continue;
    ESPALIER_CHECK(after[c] <= before[c] && after[c] + tags[c] >= before[c]);
  }
}

void check_calls(const ParsedReply& reply) {
  for (const ParsedCall& call : reply.calls) {
    ESPALIER_CHECK(!call.name.empty());
    const Result<Json> arguments = parse_json(call.arguments, "arguments");
    ESPALIER_CHECK(arguments.ok() && arguments->is_object());
  }
}

}  // namespace
}  // namespace espalier

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier;
  // Parameters of one tool are text, so that they come out byte for byte; those of the other are of every kind.
  static const auto text_tools = tools(R"([{"type":"function","function":{"name":"bash","parameters":{"properties":{
      "command":{"type":"string"}}}}}])");
  static const auto typed_tools = tools(R"([{"type":"function","function":{"name":"bash","parameters":{"properties":{"command":{"type":"array"},
      "i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},"o":{"type":"object"},"d":{"type":"date"},
      "u":{"anyOf":[{"type":"null"},{"enum":[1,"2"]}]}}}}}])");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool thinking : {false, true}) {
    const fuzz::ReadReply read =
        fuzz::read_reply(text, {.format = ToolCallFormat::kXmlFunction, .tools = text_tools, .starts_in_reasoning = thinking});
    check_calls(read.reply);
    check_nothing_lost(text, read);
    check_calls(fuzz::read_reply(text, {.format = ToolCallFormat::kXmlFunction, .tools = typed_tools, .starts_in_reasoning = thinking}).reply);
    check_calls(fuzz::read_reply(text, {.format = ToolCallFormat::kJsonFunction, .tools = typed_tools, .starts_in_reasoning = thinking}).reply);
  }
  return 0;
}
