// The keys of snapshots that were evicted, the last few of them: so that a miss can say "it was there". Engine thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "base/token_id.h"
#include "cache/token_key.h"

namespace espalier {

class GhostList {
 public:
  static constexpr size_t kMaxGhosts = 512;
  struct Ghost {
    uint64_t settings = 0;
    TokenKey key;
    std::chrono::steady_clock::time_point evicted;
  };

  void add(const Ghost& ghost);
  void forget(uint64_t settings, const TokenKey& key);  // it lives again
  // The longest ghost of more than `min_count` and at most `max_count` tokens that is a prefix of `prompt`.
  std::optional<Ghost> longest_prefix(std::span<const TokenId> prompt, uint64_t settings, size_t min_count, size_t max_count) const;
  size_t size() const { return ghosts_.size(); }

 private:
  std::deque<Ghost> ghosts_;  // oldest first
};

}  // namespace espalier
