// Any bytes as a reply that begins in a think block: in pieces it splits as it does whole, and the two parts are the reply but for the tags
// between and before them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "chat/reply_text.h"
#include "fuzz/reply_cuts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace espalier;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const ParsedReply reply = fuzz::read_reply(input, {.format = ToolCallFormat::kXmlFunction, .starts_in_reasoning = true}).reply;
  ESPALIER_CHECK(reply.calls.empty());
  ESPALIER_CHECK(reply.reasoning.find("</think>") == std::string::npos);

  std::string text = replace_invalid_utf8(input);
  constexpr std::string_view kOpener = "<think>", kCloser = "</think>";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first != std::string::npos && text.compare(first, kOpener.size(), kOpener) == 0) text.erase(first, kOpener.size());
  const std::string_view behind = std::string_view(text).substr(std::min(reply.reasoning.size(), text.size()));
  ESPALIER_CHECK(text.starts_with(reply.reasoning));
  if (behind.starts_with(kCloser)) {
    ESPALIER_CHECK(behind.substr(kCloser.size()) == reply.content);
  } else {
    ESPALIER_CHECK(behind == reply.content);
    ESPALIER_CHECK(reply.content.empty() || reply.content.starts_with("<tool_call>"));
  }

  const ParsedReply off = fuzz::read_reply(input, {.format = ToolCallFormat::kXmlFunction}).reply;
  ESPALIER_CHECK(off.reasoning.empty() && off.content == replace_invalid_utf8(input));
  return 0;
}
