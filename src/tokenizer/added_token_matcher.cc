#include "tokenizer/added_token_matcher.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/char_class.h"

namespace espalier {
namespace {

uint64_t edge(uint32_t node, char byte) { return (uint64_t{node} << 8) | static_cast<uint8_t>(byte); }

// Begins of the characters around a position in text.
size_t next_char(std::string_view text, size_t at) { return at + decode_utf8(text, at).length; }
size_t previous_char(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

bool is_space(std::string_view text, size_t at) { return char_classes()[decode_utf8(text, at).value] == CharClass::kSpace; }

// \w, by the classes at hand: letters, marks, numbers and "_". (The reference also has the other connectors and joiners, and of the
// numbers only digits; no published tokenizer of the family has a single_word token.)
bool is_word(std::string_view text, size_t at) {
  const CharClass type = char_classes()[decode_utf8(text, at).value];
  return type == CharClass::kLetter || type == CharClass::kMark || type == CharClass::kNumber || text[at] == '_';
}

bool stands_alone(std::string_view text, TextRange range) {
  return (range.begin == 0 || !is_word(text, previous_char(text, range.begin))) && (range.end == text.size() || !is_word(text, range.end));
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), token_at_{kNone} {
  for (uint32_t index = 0; index < tokens_.size(); ++index) {
    uint32_t node = 0;
    for (const char byte : tokens_[index].content) {
      const auto [found, inserted] = edges_.try_emplace(edge(node, byte), static_cast<uint32_t>(token_at_.size()));
      if (inserted) token_at_.push_back(kNone);
      node = found->second;
    }
    token_at_[node] = index;
    begins_[static_cast<uint8_t>(tokens_[index].content[0])] = true;
  }
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::find(std::string_view text, TextRange range) const {
  for (size_t begin = range.begin; begin < range.end; ++begin) {
    if (!begins_[static_cast<uint8_t>(text[begin])]) continue;
    std::optional<Match> longest;
    uint32_t node = 0;
    for (size_t at = begin; at < range.end;) {
      const auto next = edges_.find(edge(node, text[at]));
      if (next == edges_.end()) break;
      node = next->second;
      ++at;
      if (token_at_[node] != kNone) longest = Match{{begin, at}, &tokens_[token_at_[node]]};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

std::vector<TextSegment> AddedTokenMatcher::split(std::string_view text, std::span<const TextRange> allowed) const {
  std::vector<TextSegment> segments;
  size_t done = 0;
  for (const TextRange& range : allowed) {
    size_t from = std::max(range.begin, done);
    while (const auto match = find(text, {from, range.end})) {
      TextRange taken = match->range;
      from = taken.end;
      if (match->token->single_word && !stands_alone(text, taken)) continue;
      if (match->token->lstrip) {
        while (taken.begin > done && is_space(text, previous_char(text, taken.begin))) taken.begin = previous_char(text, taken.begin);
      }
      if (match->token->rstrip) {
        while (taken.end < text.size() && is_space(text, taken.end)) taken.end = next_char(text, taken.end);
      }
      if (done < taken.begin) segments.push_back({{done, taken.begin}, std::nullopt});
      segments.push_back({taken, match->token->id});
      done = taken.end;
      from = std::max(from, done);
    }
  }
  if (done < text.size()) segments.push_back({{done, text.size()}, std::nullopt});
  return segments;
}

}  // namespace espalier
