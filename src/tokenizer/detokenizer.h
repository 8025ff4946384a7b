// Turns a stream of token ids into text piece by piece, whatever the size of the bursts. A piece never ends inside a character that the
// next token could complete; the pieces and the flush joined are Tokenizer::decode of all ids. A copy continues independently.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/token_id.h"
#include "tokenizer/tokenizer.h"

namespace espalier {

class StreamingDetokenizer {
 public:
  explicit StreamingDetokenizer(std::shared_ptr<const Tokenizer> tokenizer, SkipSpecial skip = SkipSpecial::kNo);

  // Text that became certain with these tokens; may be empty. Bytes that form no character become U+FFFD.
  std::string push(TokenId id) { return push(std::span(&id, 1)); }
  std::string push(std::span<const TokenId> ids);
  // The stream ends: a character still incomplete becomes U+FFFD. Ready for a new stream afterwards.
  std::string flush();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  SkipSpecial skip_;
  std::string held_;  // the beginning of a character, at most 3 bytes
};

}  // namespace espalier
