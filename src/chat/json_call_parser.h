// Tool calls in the form <tool_call>{"name": NAME, "arguments": {...}}</tool_call>. Values are already JSON, so schemas have no say: a
// member of the arguments that is no valid JSON is read as a Python literal, and else is a string. See CallParser.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "chat/call_parser.h"
#include "chat/json_member_scanner.h"
#include "chat/tool_schemas.h"

namespace espalier {

class JsonCallParser final : public CallParser {
 public:
  JsonCallParser(DeltaWriter& deltas, std::shared_ptr<const ToolSchemas> tools) : CallParser(deltas), tools_(std::move(tools)) {}

  void feed(std::string_view text) override;
  void finish() override;

 private:
  struct OpenCall {
    JsonMemberScanner object;
    std::optional<JsonMemberScanner> arguments = {};   // while they are being read member by member
    bool begun = false;                                // its name is known
    bool has_arguments = false;
    std::optional<std::string> early_arguments = {};   // they came before the name
  };

  // Each takes what has arrived; false if more is needed.
  bool take_text();
  bool take_opener();
  bool take_object();
  bool take_arguments();

  // False if the call turns out to be none.
  bool take_call_member();
  void take_whole_arguments(std::string_view value);
  void end_call();
  void break_off_call(size_t at);
  void pass_text(size_t end);
  void pass_markup(size_t end);

  std::shared_ptr<const ToolSchemas> tools_;
  std::string text_;
  size_t at_ = 0;
  size_t passed_ = 0;  // what stands before is decided
  enum class Where { kText, kBehindOpener, kCall } where_ = Where::kText;
  std::optional<OpenCall> call_ = {};
};

}  // namespace espalier
