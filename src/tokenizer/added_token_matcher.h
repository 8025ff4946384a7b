// Finds added tokens in text: leftmost first, the longest of those that begin together. Immutable after building.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/token_id.h"
#include "tokenizer/added_token.h"

namespace espalier {

struct TextRange {
  size_t begin = 0;
  size_t end = 0;
};

// A stretch of the text: one added token, or ordinary text between two of them.
struct TextSegment {
  TextRange range;
  std::optional<TokenId> token;
};

class AddedTokenMatcher {
 public:
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }
  // Cuts `text` into segments, none empty, in order and without gaps. A token is matched only where it lies within one of the `allowed`
  // ranges (ascending, disjoint); lstrip, rstrip and single_word look beyond them.
  std::vector<TextSegment> split(std::string_view text, std::span<const TextRange> allowed) const;

 private:
  struct Match {
    TextRange range;
    const AddedToken* token;
  };
  std::optional<Match> find(std::string_view text, TextRange range) const;

  std::vector<AddedToken> tokens_;
  // A trie: edges by (node, byte); each node may end a token (index into tokens_, or kNone).
  static constexpr uint32_t kNone = UINT32_MAX;
  std::unordered_map<uint64_t, uint32_t> edges_;
  std::vector<uint32_t> token_at_;
  std::array<bool, 256> begins_{};  // bytes that begin some token
};

}  // namespace espalier
