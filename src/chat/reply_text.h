// Questions that the parsers of replies ask of text: whether a tag stands there that may not have arrived in full, and what is blank. Pure.
#pragma once

#include <string_view>

namespace espalier {

enum class TagMatch {
  kNone,
  kPartial,  // the text ends inside the tag
  kFull,
};

inline TagMatch match_tag(std::string_view text, std::string_view tag) {
  if (text.starts_with(tag)) return TagMatch::kFull;
  return text.size() < tag.size() && tag.starts_with(text) ? TagMatch::kPartial : TagMatch::kNone;
}

inline constexpr std::string_view kBlanks = " \t\r\n\f\v";

inline bool is_blank(std::string_view text) { return text.find_first_not_of(kBlanks) == std::string_view::npos; }

inline std::string_view trim_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace espalier
