// Which neighbours merge, in which order, into what: an open-addressed table of one 64-bit word per merge. Immutable after building.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/token_id.h"
#include "tokenizer/vocabulary.h"

namespace espalier {

class MergeTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // `merges` is model.merges of tokenizer.json, lowest rank first, each ["a", "b"] or "a b" in the byte-level alphabet; a, b and their
  // concatenation must be base tokens, and no pair may come twice. `where` names it in errors.
  static Result<MergeTable> from_json(const Json& merges, const Vocabulary& vocabulary, std::string_view where);

  // Rank of the merge of two neighbours (the lowest goes first), kNone if they do not merge.
  uint32_t rank(TokenId left, TokenId right) const {
    const uint64_t wanted = key(left, right);
    for (size_t at = slot(wanted);; at = (at + 1) & mask_) {
      const uint64_t found = slots_[at];
      if (found >> kRankBits == wanted) return static_cast<uint32_t>(found & kRankMask);
      if (found == kEmpty) return kNone;
    }
  }
  // What the merge of that rank makes.
  TokenId merged(uint32_t rank) const { return merged_[rank]; }

 private:
  MergeTable() = default;
  bool insert(TokenId left, TokenId right, uint32_t rank);

  static constexpr int kIdBits = 22;
  static constexpr int kRankBits = 20;
  static constexpr uint64_t kRankMask = (uint64_t{1} << kRankBits) - 1;
  static constexpr uint64_t kEmpty = UINT64_MAX;  // its rank, 2^20 - 1, is never given
  static uint64_t key(TokenId left, TokenId right) { return (static_cast<uint64_t>(left) << kIdBits) | static_cast<uint64_t>(right); }
  size_t slot(uint64_t pair) const { return (pair * 0x9E3779B97F4A7C15u) >> shift_; }

  std::vector<uint64_t> slots_;  // left id, right id, rank; a power of two, at most half full
  size_t mask_ = 0;
  int shift_ = 0;
  std::vector<TokenId> merged_;  // by rank
};

}  // namespace espalier
