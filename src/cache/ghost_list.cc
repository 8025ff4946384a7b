#include "cache/ghost_list.h"

#include <algorithm>
#include <vector>

namespace espalier {

void GhostList::add(const Ghost& ghost) {
  forget(ghost.settings, ghost.key);
  if (ghosts_.size() == kMaxGhosts) ghosts_.pop_front();
  ghosts_.push_back(ghost);
}

void GhostList::forget(uint64_t settings, const TokenKey& key) {
  std::erase_if(ghosts_, [&](const Ghost& ghost) { return ghost.settings == settings && ghost.key == key; });
}

std::optional<GhostList::Ghost> GhostList::longest_prefix(std::span<const TokenId> prompt, uint64_t settings, size_t min_count,
                                                          size_t max_count) const {
  std::vector<const Ghost*> candidates;
  for (const Ghost& ghost : ghosts_) {
    const size_t count = ghost.key.count;
    if (ghost.settings == settings && count > min_count && count <= std::min(max_count, prompt.size())) candidates.push_back(&ghost);
  }
  std::sort(candidates.begin(), candidates.end(), [](const Ghost* a, const Ghost* b) { return a->key.count < b->key.count; });
  PrefixHasher hasher(prompt);
  std::optional<Ghost> longest;
  for (const Ghost* ghost : candidates) {
    if (hasher.key(ghost->key.count) == ghost->key) longest = *ghost;
  }
  return longest;
}

}  // namespace espalier
