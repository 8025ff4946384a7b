// Fast non-cryptographic hashes (XXH3) for look-up tables. Whoever looks up by hash compares the contents as well where they come from
// outside.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string_view>

namespace espalier {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  auto operator<=>(const Hash128&) const = default;
};

uint64_t hash64(std::string_view bytes, uint64_t seed = 0);
// Chains: the hash of `bytes` after everything that `before` stands for.
Hash128 hash128(std::string_view bytes, const Hash128& before = {});

}  // namespace espalier

template <>
struct std::hash<espalier::Hash128> {
  size_t operator()(const espalier::Hash128& value) const noexcept { return static_cast<size_t>(value.low); }
};
