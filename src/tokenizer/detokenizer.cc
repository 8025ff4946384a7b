#include "tokenizer/detokenizer.h"

#include <utility>

#include "base/utf8.h"

namespace espalier {

StreamingDetokenizer::StreamingDetokenizer(std::shared_ptr<const Tokenizer> tokenizer, SkipSpecial skip)
    : tokenizer_(std::move(tokenizer)), skip_(skip) {}

std::string StreamingDetokenizer::push(std::span<const TokenId> ids) {
  for (const TokenId id : ids) {
    if (skip_ == SkipSpecial::kYes && tokenizer_->is_special(id)) continue;
    held_ += tokenizer_->token_bytes(id);
  }
  const size_t certain = held_.size() - incomplete_utf8_suffix(held_);
  std::string piece = replace_invalid_utf8(std::string_view(held_).substr(0, certain));
  held_.erase(0, certain);
  return piece;
}

std::string StreamingDetokenizer::flush() { return replace_invalid_utf8(std::exchange(held_, {})); }

}  // namespace espalier
