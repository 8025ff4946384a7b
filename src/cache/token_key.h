// The exact identity of a token prefix: how many tokens and a hash of them. What a snapshot is filed under, checked when it is saved
// and again when it is restored.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hash.h"
#include "base/token_id.h"

namespace espalier {

struct TokenKey {
  size_t count = 0;
  Hash128 hash;
  auto operator<=>(const TokenKey&) const = default;
};

// Keys of growing prefixes of one token sequence, each in time of the tokens since the last.
class PrefixHasher {
 public:
  explicit PrefixHasher(std::span<const TokenId> tokens) : tokens_(tokens) {}
  TokenKey key(size_t count);  // counts must not fall; count <= tokens.size()

 private:
  std::span<const TokenId> tokens_;
  size_t chained_ = 0;  // whole chunks hashed into chain_
  Hash128 chain_;
};

TokenKey token_key(std::span<const TokenId> tokens);

}  // namespace espalier
