#include "replay/answer_actions.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace espalier {
namespace {

constexpr std::string_view kFunctionOpen = "<function=";
constexpr std::string_view kFunctionClose = "</function>";
constexpr std::string_view kParameterOpen = "<parameter=";
constexpr std::string_view kParameterClose = "</parameter>";
constexpr std::string_view kCallClose = "</tool_call>";
constexpr size_t kNone = std::string_view::npos;

// Reads forward; a position never moves back, so that the whole text is read once.
class CallReader {
 public:
  explicit CallReader(std::string_view text) : text_(text) {}

  bool find_call() {
    const size_t open = text_.find(kFunctionOpen, at_);
    if (open == kNone) return false;
    at_ = open + kFunctionOpen.size();
    return true;
  }

  // From behind "<function=". Empty: not a call, or one that does not end.
  std::optional<Json> read_call() {
    const std::optional<std::string_view> name = read_name();
    if (!name) return std::nullopt;
    Json arguments = Json::object();
    for (;;) {
      skip_spaces();
      if (take(kFunctionClose) || take(kCallClose)) break;
      if (!take(kParameterOpen)) return std::nullopt;
      const std::optional<std::string_view> key = read_name();
      if (!key) return std::nullopt;
      const std::optional<std::string_view> value = read_value();
      if (!value) return std::nullopt;
      arguments[std::string(*key)] = *value;
    }
    return Json{{"type", "function"}, {"function", Json{{"name", *name}, {"arguments", dump_json(arguments)}}}};
  }

 private:
  std::optional<std::string_view> read_name() {
    const size_t end = text_.find_first_of(">\n<", at_);
    if (end == kNone || text_[end] != '>' || end == at_) return std::nullopt;
    const std::string_view name = text_.substr(at_, end - at_);
    at_ = end + 1;
    return name;
  }

  std::optional<std::string_view> read_value() {
    const size_t close = text_.find(kParameterClose, at_);
    if (close == kNone) {
      at_ = text_.size();  // the rest is this value, whatever it looks like
      return std::nullopt;
    }
    std::string_view value = text_.substr(at_, close - at_);
    at_ = close + kParameterClose.size();
    if (value.starts_with('\n')) value.remove_prefix(1);
    if (value.ends_with('\n')) value.remove_suffix(1);
    return value;
  }

  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  bool take(std::string_view tag) {
    if (!text_.substr(at_).starts_with(tag)) return false;
    at_ += tag.size();
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Json answer_tool_calls(std::string_view text) {
  Json calls = Json::array();
  CallReader reader(text);
  while (reader.find_call()) {
    if (std::optional<Json> call = reader.read_call()) calls.push_back(*std::move(call));
  }
  return calls;
}

}  // namespace espalier
