#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace espalier {

uint64_t hash64(std::string_view bytes, uint64_t seed) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed); }

Hash128 hash128(std::string_view bytes, const Hash128& before) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);  // the reset compares with the seed and secret of before
  XXH3_128bits_reset_withSeed(&state, before.low);
  XXH3_128bits_update(&state, &before.high, sizeof before.high);
  XXH3_128bits_update(&state, bytes.data(), bytes.size());
  const XXH128_hash_t digest = XXH3_128bits_digest(&state);
  return {digest.low64, digest.high64};
}

}  // namespace espalier
