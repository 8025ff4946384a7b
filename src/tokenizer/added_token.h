// A token that tokenizer.json or tokenizer_config.json adds to the base vocabulary: matched in raw text before anything else.
#pragma once

#include <string>

#include "base/token_id.h"

namespace espalier {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool lstrip = false;       // swallows the whitespace before it
  bool rstrip = false;       // swallows the whitespace after it
  bool single_word = false;  // matches only where no word character touches it
  bool normalized = false;   // matched after NFC, else before
  bool special = false;      // left out by SkipSpecial::kYes
  bool operator==(const AddedToken&) const = default;
};

}  // namespace espalier
