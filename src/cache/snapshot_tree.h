// All snapshots, filed by the exact tokens they stand for: finds the longest usable one, says why it is not longer, knows where the next
// one would pay, and names the least valuable. Holds no memory of its own beyond the token runs; pages and slots are references.
// Engine thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "cache/cache_spec.h"
#include "cache/cache_stats.h"
#include "cache/ghost_list.h"
#include "cache/match.h"
#include "cache/snapshot.h"
#include "cache/token_tree.h"

namespace espalier {

class SnapshotTree {
 public:
  // Bytes of one page and of one state: what an eviction frees.
  SnapshotTree(size_t page_bytes, size_t state_bytes, CacheClock clock);

  Match match(std::span<const TokenId> prompt, size_t max_tokens, uint64_t settings) const;
  std::vector<int32_t> wanted_captures(std::span<const TokenId> prompt, size_t num_hot, uint64_t settings, size_t limit) const;

  // The snapshot of exactly `tokens`, or null.
  Snapshot* find(std::span<const TokenId> tokens, uint64_t settings) const;
  // Files a snapshot; its key must be that of `tokens` and not be held. Full pages that a relative holds for the same tokens replace its
  // own: equal tokens have equal keys and values, so they are kept once.
  Snapshot& add(std::span<const TokenId> tokens, Snapshot snapshot, int32_t page_size);
  // Takes a snapshot out and remembers that it was there. Must not be pinned.
  Snapshot remove(Snapshot& snapshot);

  void used(Snapshot& snapshot);       // a sequence resumed it
  void refreshed(Snapshot& snapshot);  // the same state was reached again

  // The tokens it stands for, checked against its key.
  std::vector<TokenId> tokens(const Snapshot& snapshot) const;

  // log2 of the tokens saved per byte freed, weighted by use: (tokens beyond the next shorter snapshot) x (1 + hits) / freed bytes, halved
  // for every kHalfLife of idleness, and divided by 16 once its conversation has moved on.
  double log2_value(const Snapshot& snapshot) const;
  Snapshot* least_valuable() const;  // of those not pinned; null: none
  size_t freed_bytes(const Snapshot& snapshot) const;

  std::span<const std::unique_ptr<Snapshot>> snapshots() const { return snapshots_; }
  SnapshotInfo describe(const Snapshot& snapshot) const;
  std::vector<SnapshotInfo> list() const;
  size_t num_known_tokens() const;
  void check_invariants() const;

  static constexpr std::chrono::seconds kHalfLife{300};

 private:
  const TokenTree* tree(uint64_t settings) const;

  size_t page_bytes_;
  size_t state_bytes_;
  CacheClock clock_;
  std::map<uint64_t, TokenTree> trees_;  // by settings
  std::vector<std::unique_ptr<Snapshot>> snapshots_;
  int64_t next_id_ = 0;
  GhostList ghosts_;
};

}  // namespace espalier
