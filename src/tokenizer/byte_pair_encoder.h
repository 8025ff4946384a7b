// Byte-pair encoding of one piece: starting from its bytes, the pair of neighbours of lowest rank merges (the leftmost of equals) until
// none does. Immutable, usable from every thread at once.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "base/token_id.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/vocabulary.h"

namespace espalier {

class BytePairEncoder {
 public:
  // Both outlive the encoder.
  BytePairEncoder(const Vocabulary& vocabulary, const MergeTable& merges);

  // Appends the ids of a non-empty `piece`; n log n in its length.
  void encode(std::string_view piece, std::vector<TokenId>& ids) const;

 private:
  void merge_to_ids(std::string_view piece, std::vector<TokenId>& ids) const;
  void merge_short(std::string_view piece, std::vector<TokenId>& ids) const;
  void merge_long(std::string_view piece, std::vector<TokenId>& ids) const;

  const Vocabulary& vocabulary_;
  const MergeTable& merges_;
  std::array<TokenId, 256> byte_ids_;
  // Tokens that merging their own bytes ends in: a piece that is one of them needs no merging, and most pieces are. The others exist
  // (201 of Qwen3.6's), and no text yields them.
  std::vector<bool> reachable_;
};

}  // namespace espalier
