// Cuts normalised text into the pieces within which merges happen. The pattern is the tokenizer file's own; those of the Qwen family are
// executed by a hand-written scanner with the semantics of a backtracking regex engine, every other is refused. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "tokenizer/char_class.h"

namespace espalier {

class PreTokenizer {
 public:
  // From the `pre_tokenizer` member of tokenizer.json; `where` names it in errors.
  static Result<PreTokenizer> from_json(const Json& pre_tokenizer, std::string_view where);

  // End of the piece that begins at `begin` < text.size(). `text` is valid UTF-8. Calling it from end to end is linear in the text.
  size_t piece_end(std::string_view text, size_t begin) const;

 private:
  explicit PreTokenizer(CharClass marks_count_as) : marks_count_as_(marks_count_as), classes_(&char_classes()) {}

  struct Char {
    CharClass type;
    uint32_t length;
  };
  Char char_at(std::string_view text, size_t at) const;
  size_t skip(std::string_view text, size_t at, CharClass type) const;
  size_t contraction_end(std::string_view text, size_t begin) const;
  size_t space_piece_end(std::string_view text, size_t begin) const;

  CharClass marks_count_as_;  // kLetter where the pattern has [\p{L}\p{M}], kOther where it has \p{L} alone
  const CharClassTable* classes_;
};

}  // namespace espalier
