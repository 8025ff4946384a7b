// What the cache shows to people and metrics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cache/snapshot.h"

namespace espalier {

enum class EvictionReason {
  kSequence,  // lowest value when a running sequence needed room
  kSnapshot,  // lowest value when a new snapshot needed room
  kTaken,     // its only user resumed it in place, because a copy did not fit
  kCleared,   // asked for
};
inline constexpr size_t kNumEvictionReasons = 4;
std::string_view eviction_reason_name(EvictionReason reason);  // "sequence", "snapshot", "taken", "cleared"

struct SnapshotInfo {
  int64_t id = -1;
  int64_t parent = -1;          // the longest snapshot that is a prefix of it; -1: none
  size_t num_tokens = 0;
  size_t freed_bytes = 0;       // what evicting it would free: its state and the pages nobody shares
  size_t num_pages = 0;
  SnapshotKind kind = SnapshotKind::kPromptEnd;
  uint64_t settings = 0;
  uint64_t hits = 0;
  double age_s = 0;
  double idle_s = 0;            // since last used
  bool pinned = false;
};

struct CacheStats {
  size_t budget_bytes = 0;
  size_t held_bytes = 0;        // never above budget_bytes
  size_t peak_bytes = 0;
  size_t page_bytes_used = 0;
  size_t state_bytes_used = 0;
  size_t kept_free_bytes = 0;
  size_t promised_bytes = 0;    // to running sequences
  size_t bytes_per_page = 0;
  size_t bytes_per_state = 0;
  size_t tokens_per_page = 0;
  size_t num_snapshots = 0;
  size_t num_pinned = 0;        // of these, kept from eviction
  size_t num_known_tokens = 0;  // of the token tree
  uint64_t snapshots_stored = 0;
  uint64_t snapshots_refreshed = 0;
  uint64_t snapshots_refused = 0;  // no room that could be freed, for the state or for the partial page
  std::array<uint64_t, kNumEvictionReasons> evictions{};
  uint64_t sequences_opened = 0;
  uint64_t sequences_hot = 0;   // of these, resumed from a snapshot
  uint64_t tokens_hot = 0;      // tokens skipped by resuming
};

}  // namespace espalier
