#include "tokenizer/pre_tokenizer.h"

#include <string>

#include "base/format.h"
#include "base/utf8.h"
#include "tokenizer/file_limits.h"

namespace espalier {
namespace {

// Qwen3.5 and later: marks belong to words.
constexpr std::string_view kMarksInWords =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Qwen2 to Qwen3.
constexpr std::string_view kMarksOutsideWords =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kLongS = "\u017F";  // folds to s

bool is_line_end(char c) { return c == '\r' || c == '\n'; }

// The value of `key` as text for comparing and naming; "nothing" if absent.
std::string found(const Json& object, const char* key) {
  const auto member = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && member != object.end() ? excerpt(*member) : "nothing";
}

Status require(const Json& object, const char* key, const Json& wanted, std::string_view where) {
  if (object.is_object() && object.contains(key) && object[key] == wanted) return Ok{};
  return make_error(ErrorCode::kUnsupported, "{}: '{}' must be {}, found {}", where, key, excerpt(wanted), found(object, key));
}

}  // namespace

Result<PreTokenizer> PreTokenizer::from_json(const Json& pre_tokenizer, std::string_view where) {
  ESPALIER_TRY(require(pre_tokenizer, "type", "Sequence", where));
  if (!pre_tokenizer.contains("pretokenizers") || !pre_tokenizer["pretokenizers"].is_array() || pre_tokenizer["pretokenizers"].size() != 2) {
    return make_error(ErrorCode::kUnsupported, "{}: 'pretokenizers' must be a Split and a ByteLevel, found {}", where,
                      found(pre_tokenizer, "pretokenizers"));
  }
  const Json& split = pre_tokenizer["pretokenizers"][0];
  const Json& byte_level = pre_tokenizer["pretokenizers"][1];
  const std::string split_where = format("{}.pretokenizers[0]", where);
  const std::string byte_level_where = format("{}.pretokenizers[1]", where);
  ESPALIER_TRY(require(split, "type", "Split", split_where));
  ESPALIER_TRY(require(split, "behavior", "Isolated", split_where));
  ESPALIER_TRY(require(split, "invert", false, split_where));
  ESPALIER_TRY(require(byte_level, "type", "ByteLevel", byte_level_where));
  ESPALIER_TRY(require(byte_level, "add_prefix_space", false, byte_level_where));
  ESPALIER_TRY(require(byte_level, "use_regex", false, byte_level_where));

  const Json pattern = split.value("pattern", Json());
  if (!pattern.is_object() || !pattern.contains("Regex") || !pattern["Regex"].is_string()) {
    return make_error(ErrorCode::kUnsupported, "{}: 'pattern' must be a Regex, found {}", split_where, found(split, "pattern"));
  }
  const auto& regex = pattern["Regex"].get_ref<const std::string&>();
  if (regex == kMarksInWords) return PreTokenizer(CharClass::kLetter);
  if (regex == kMarksOutsideWords) return PreTokenizer(CharClass::kOther);
  return make_error(ErrorCode::kUnsupported, "{}: the regex is not one of the Qwen family's two: {}", split_where, utf8_prefix(dump_json(regex), 300));
}

inline PreTokenizer::Char PreTokenizer::char_at(std::string_view text, size_t at) const {
  const auto byte = static_cast<uint8_t>(text[at]);
  if (byte < 0x80) return {(*classes_)[byte], 1};
  const CodePoint point = decode_utf8(text, at);
  const CharClass type = (*classes_)[point.value];
  return {type == CharClass::kMark ? marks_count_as_ : type, point.length};
}

inline size_t PreTokenizer::skip(std::string_view text, size_t at, CharClass type) const {
  while (at < text.size()) {
    const Char next = char_at(text, at);
    if (next.type != type) break;
    at += next.length;
  }
  return at;
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d); `begin` where it does not match.
size_t PreTokenizer::contraction_end(std::string_view text, size_t begin) const {
  if (text[begin] != '\'' || begin + 1 >= text.size()) return begin;
  const auto lower = [&](size_t at) { return at < text.size() ? static_cast<char>(text[at] | 0x20) : '\0'; };
  const char first = lower(begin + 1);
  const char second = lower(begin + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return begin + 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return begin + 3;
  if (text.substr(begin + 1, kLongS.size()) == kLongS) return begin + 1 + kLongS.size();
  return begin;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ at a whitespace character.
size_t PreTokenizer::space_piece_end(std::string_view text, size_t begin) const {
  size_t last = begin;       // where the run's last character begins
  size_t after_line = begin; // one past the run's last CR or LF
  size_t end = begin;
  while (end < text.size()) {
    const Char next = char_at(text, end);
    if (next.type != CharClass::kSpace) break;
    last = end;
    end += next.length;
    if (is_line_end(text[last])) after_line = end;
  }
  if (after_line != begin) return after_line;
  if (end == text.size() || last == begin) return end;
  return last;  // the last one goes with what follows
}

size_t PreTokenizer::piece_end(std::string_view text, size_t begin) const {
  if (const size_t end = contraction_end(text, begin); end != begin) return end;

  const Char first = char_at(text, begin);
  const size_t second = begin + first.length;
  if (first.type == CharClass::kLetter) return skip(text, second, CharClass::kLetter);
  if (first.type == CharClass::kNumber) return second;

  // [^\r\n\p{L}\p{N}]? before letters, one space before other characters.
  if (second < text.size()) {
    const Char next = char_at(text, second);
    if (next.type == CharClass::kLetter && !is_line_end(text[begin])) return skip(text, second + next.length, CharClass::kLetter);
    if (next.type != CharClass::kOther && first.type == CharClass::kSpace) return space_piece_end(text, begin);
  }
  if (first.type == CharClass::kSpace && (text[begin] != ' ' || second == text.size())) return space_piece_end(text, begin);
  size_t end = skip(text, second, CharClass::kOther);
  while (end < text.size() && is_line_end(text[end])) ++end;
  return end;
}

}  // namespace espalier
