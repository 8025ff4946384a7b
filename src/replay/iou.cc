#include "replay/iou.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/format.h"
#include "base/utf8.h"

namespace espalier {
namespace {

constexpr size_t kNone = std::string_view::npos;

// Where the double-quoted stretch that opens at `begin` closes. A backslash escapes any one character but a newline; a stretch with
// anything else after a backslash, or without an end, is none. Scans that begin in one run of escapes overlap: the table of all
// positions, filled from the end, keeps a command of escaped quotes linear.
class DoubleQuotes {
 public:
  explicit DoubleQuotes(std::string_view text) : text_(text) {}

  size_t closing(size_t begin) {
    if (close_.empty()) fill();
    return close_[begin + 1];
  }

 private:
  void fill() {
    const size_t size = text_.size();
    close_.assign(size + 2, kNone);
    for (size_t i = size; i-- > 0;) {
      if (text_[i] == '"') {
        close_[i] = i;
      } else if (text_[i] == '\\') {
        close_[i] = i + 1 < size && text_[i + 1] != '\n' ? close_[i + 2] : kNone;
      } else {
        close_[i] = close_[i + 1];
      }
    }
  }

  std::string_view text_;
  std::vector<size_t> close_;  // closing quote of a stretch whose inside is read from here
};

std::string without_quotes(std::string_view command) {
  DoubleQuotes double_quotes(command);
  bool unclosed_single = false, unclosed_backtick = false;
  std::string bare;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    size_t close = kNone;
    if (c == '"') close = double_quotes.closing(i);
    if (c == '\'' && !unclosed_single) unclosed_single = (close = command.find('\'', i + 1)) == kNone;
    if (c == '`' && !unclosed_backtick) unclosed_backtick = (close = command.find('`', i + 1)) == kNone;
    bare += close == kNone ? c : ' ';
    if (close != kNone) i = close;
  }
  return bare;
}

std::vector<std::string_view> split_pieces(std::string_view text) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool two_ampersands = text[i] == '&' && i + 1 < text.size() && text[i + 1] == '&';
    if (text[i] != '|' && text[i] != ';' && text[i] != '\n' && !two_ampersands) continue;
    pieces.push_back(text.substr(begin, i - begin));
    if (two_ampersands) ++i;
    begin = i + 1;
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

// What Python's str.split() splits at.
bool is_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

std::vector<std::string_view> split_words(std::string_view piece) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t i = 0; i < piece.size();) {
    const CodePoint c = decode_utf8(piece, i);
    if (is_space(c.value)) {
      if (i > begin) words.push_back(piece.substr(begin, i - begin));
      begin = i + c.length;
    }
    i += c.length;
  }
  if (begin < piece.size()) words.push_back(piece.substr(begin));
  return words;
}

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_assignment(std::string_view word) {
  if (word.empty() || !is_letter(word[0])) return false;
  const size_t end = static_cast<size_t>(std::find_if(word.begin(), word.end(), [](char c) { return !is_letter(c) && !is_digit(c); }) - word.begin());
  return end < word.size() && word[end] == '=';
}

bool is_prefix(std::string_view word) {
  constexpr std::array<std::string_view, 6> kPrefixes{"env", "time", "nice", "sudo", "exec", "command"};
  return is_assignment(word) || std::find(kPrefixes.begin(), kPrefixes.end(), word) != kPrefixes.end();
}

// Removes ".3" or ".3.8" at the end; of three numbers only the last two.
std::string_view without_version(std::string_view name) {
  for (int part = 0; part < 2; ++part) {
    size_t digits = name.size();
    while (digits > 0 && is_digit(name[digits - 1])) --digits;
    if (digits == name.size() || digits == 0 || name[digits - 1] != '.') break;
    name = name.substr(0, digits - 1);
  }
  return name;
}

const std::unordered_map<std::string_view, std::string_view>& actions_by_name() {
  static const std::unordered_map<std::string_view, std::string_view> table = [] {
    std::unordered_map<std::string_view, std::string_view> map{
        {"python", "python"}, {"python2", "python"}, {"python3", "python"}, {"py", "python"},
        {"pip", "pip"}, {"pip3", "pip"},
        {"sphinx-build", "sphinx"}, {"sphinx-quickstart", "sphinx"},
        {"cat", "cat"}, {"less", "cat"}, {"more", "cat"},
        {"grep", "grep"}, {"egrep", "grep"}, {"fgrep", "grep"}, {"rg", "grep"}, {"ag", "grep"},
        {"awk", "awk"}, {"gawk", "awk"},
        {"find", "find"}, {"locate", "find"},
        {"source", "source"}, {".", "source"},
        {"curl", "curl"}, {"wget", "curl"},
        {"apt", "apt"}, {"apt-get", "apt"},
    };
    for (const std::string_view name :
         {"pytest", "pylint", "cython", "make", "conda", "head",  "tail",    "wc",     "diff", "git",  "sed",   "tr",      "sort", "uniq", "cut",
          "ls",     "xargs",  "cp",     "mv",   "rm",    "mkdir", "touch",   "tee",    "which", "alias", "unset", "export", "true", "false", "timeout",
          "date",   "yum"}) {
      map.emplace(name, name);
    }
    return map;
  }();
  return table;
}

// Python's truth of a JSON value: what `a or b` looks at.
bool is_truthy(const Json& value) {
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0.0;
  return !value.empty();
}

// The shell command of one call; null if it is none.
const std::string* shell_command(const Json& call, Json& parsed_arguments) {
  if (!call.is_object()) return nullptr;
  const auto function = call.find("function");
  if (function == call.end() || !function->is_object()) return nullptr;
  const auto name = function->find("name");
  if (name == function->end() || *name != "bash") return nullptr;
  const auto given = function->find("arguments");
  if (given == function->end()) return nullptr;
  const Json* arguments = &*given;
  if (given->is_string()) {
    Result<Json> parsed = parse_json(given->get_ref<const std::string&>(), "arguments");
    if (!parsed.ok()) return nullptr;
    parsed_arguments = std::move(parsed).value();
    arguments = &parsed_arguments;
  }
  if (!arguments->is_object()) return nullptr;
  auto command = arguments->find("command");
  if (command == arguments->end() || !is_truthy(*command)) command = arguments->find("cmd");
  return command != arguments->end() && command->is_string() ? &command->get_ref<const std::string&>() : nullptr;
}

double round_to_4_decimals(double value) {
  const std::string text = format("{:.4f}", value);
  double rounded = value;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

}  // namespace

std::vector<std::string> command_actions(std::string_view command) {
  std::vector<std::string> actions;
  const std::string bare = without_quotes(command);
  for (const std::string_view piece : split_pieces(bare)) {
    const std::vector<std::string_view> words = split_words(piece);
    const auto program = std::find_if_not(words.begin(), words.end(), is_prefix);
    if (program == words.end()) continue;
    std::string name(program->substr(program->rfind('/') + 1));  // npos + 1 is 0: no slash, the whole word
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    const auto action = actions_by_name().find(without_version(name));
    if (action != actions_by_name().end()) actions.emplace_back(action->second);
  }
  return actions;
}

std::vector<std::string> tool_call_actions(const Json& tool_calls) {
  std::vector<std::string> actions;
  if (!tool_calls.is_array()) return actions;
  for (const Json& call : tool_calls) {
    Json arguments;
    const std::string* command = shell_command(call, arguments);
    if (command == nullptr) continue;
    for (std::string& action : command_actions(*command)) actions.push_back(std::move(action));
  }
  return actions;
}

double multiset_iou(std::span<const std::string> recorded, std::span<const std::string> answered) {
  std::map<std::string_view, std::pair<int64_t, int64_t>> counts;
  for (const std::string& action : recorded) ++counts[action].first;
  for (const std::string& action : answered) ++counts[action].second;
  int64_t common = 0, all = 0;
  for (const auto& [action, count] : counts) {
    common += std::min(count.first, count.second);
    all += std::max(count.first, count.second);
  }
  return all == 0 ? 0.0 : static_cast<double>(common) / static_cast<double>(all);
}

IouSummary summarise_iou(std::span<const TurnScore> turns) {
  std::vector<const TurnScore*> scored;
  for (const TurnScore& turn : turns) {
    if (!turn.recorded.empty()) scored.push_back(&turn);
  }
  std::sort(scored.begin(), scored.end(), [](const TurnScore* a, const TurnScore* b) {
    return std::tie(a->conversation_id, a->turn) < std::tie(b->conversation_id, b->turn);
  });
  IouSummary summary{.expected = static_cast<int64_t>(scored.size())};
  double sum = 0.0;
  for (const TurnScore* turn : scored) {
    if (turn->observed) {
      ++summary.observed;
      sum += multiset_iou(turn->recorded, turn->answered);
    } else {
      ++summary.missing;
    }
  }
  if (!scored.empty()) summary.score = round_to_4_decimals(sum / static_cast<double>(scored.size()));
  return summary;
}

}  // namespace espalier
