#include "cache/token_key.h"

#include <string_view>

#include "base/result.h"

namespace espalier {
namespace {

// Prefixes are hashed in chunks of this many tokens, chained, so that the keys of many prefixes cost one walk. Part of every key.
constexpr size_t kChunk = 256;

std::string_view bytes_of(std::span<const TokenId> tokens) { return {reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()}; }

}  // namespace

TokenKey PrefixHasher::key(size_t count) {
  ESPALIER_CHECK(count >= chained_ && count <= tokens_.size());
  for (; chained_ + kChunk <= count; chained_ += kChunk) chain_ = hash128(bytes_of(tokens_.subspan(chained_, kChunk)), chain_);
  return {count, hash128(bytes_of(tokens_.subspan(chained_, count - chained_)), chain_)};
}

TokenKey token_key(std::span<const TokenId> tokens) { return PrefixHasher(tokens).key(tokens.size()); }

}  // namespace espalier
