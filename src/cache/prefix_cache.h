// The cache of an engine: pages and states under one hard byte budget, and the tree of snapshots that makes prefixes resumable. Knows
// token ids and bytes, nothing of the model. Engine thread only.
//
//   Match match = cache.match(prompt, prompt.size() - 1);          // at least one token must be computed to have logits
//   cache.open(std::move(match), prompt.size() + max_new_tokens)   // a SequenceState; or wait: kResourceExhausted, with numbers
//   for (position : cache.wanted_captures(prompt, sequence.num_hot())) slot = cache.capture_slot();  // states captured in passing
//   cache.reserve(sequence, n); forward; sequence.commit(tokens);
//   cache.store(sequence, position, std::move(slot), SnapshotKind::kDivergence);
//   cache.store(std::move(sequence), SnapshotKind::kReplyEnd);
//
// Everything made by a cache (sequences, slots, matches, pins) must be gone before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "base/token_id.h"
#include "cache/block_pool.h"
#include "cache/cache_spec.h"
#include "cache/cache_stats.h"
#include "cache/match.h"
#include "cache/memory_budget.h"
#include "cache/sequence_state.h"
#include "cache/snapshot.h"
#include "cache/state_slot.h"

namespace espalier {

// What became of a snapshot that was offered.
enum class Stored {
  kNew,
  kRefreshed,  // the same prefix is held already: now the most recently used
  kNoRoom,     // not held: the room is taken by running sequences and pins
  kNothing,    // a sequence that has absorbed no token
};

struct StoreResult {
  Stored stored = Stored::kNoRoom;
  PinnedSnapshot snapshot;  // empty when nothing was kept, or when pinning it would hold memory promised to a running sequence
};

class PrefixCache {
 public:
  // kInvalidArgument for a layout without bytes or a budget below one page and one state, with the numbers.
  static Result<std::unique_ptr<PrefixCache>> create(const CacheSpec& spec, Backend& backend,
                                                     CacheClock clock = [] { return std::chrono::steady_clock::now(); });
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  KvView kv() const;
  StateView state() const;

  // The longest snapshot of at most `max_tokens` tokens that is a prefix of `prompt`, pinned. O(prompt length). `settings` names what
  // else a state depends on (adapters, a tenant); snapshots of other settings never match. Counts as a use only once opened.
  // Empty (kNoRoom) where the pin would hold memory promised to running sequences: then the prompt does not fit now, hot or cold.
  Match match(std::span<const TokenId> prompt, size_t max_tokens, uint64_t settings = 0);

  // A match that resumes exactly `snapshot`: forks a prompt for several replies, wakes a sequence set aside.
  Match match_of(const PinnedSnapshot& snapshot);

  // Positions behind the hot part, ascending, where this prompt leaves known text or known prompts parted, and no snapshot is kept:
  // the next prompt that shares as much would resume there. At most kMaxWantedCaptures, the longest ones.
  static constexpr size_t kMaxWantedCaptures = 4;
  std::vector<int32_t> wanted_captures(std::span<const TokenId> prompt, int32_t num_hot, uint64_t settings = 0) const;

  // Worst case of a sequence of `max_tokens` tokens in all (prompt, reply, draft nodes in flight): pages and one state. Captures are
  // not part of it: they take only room that nobody was promised.
  size_t bytes_for(int32_t max_tokens) const;
  int64_t max_tokens_that_fit() const;  // of one sequence that has the whole budget
  Status check_can_ever_fit(int32_t max_tokens) const;                     // kResourceExhausted with the arithmetic: refuse the request
  Status check_fits_now(const Match& match, int32_t max_tokens) const;     // after evicting what may go: else let it wait

  // Starts a sequence from the match (its tokens, pages by reference, a copy of its state: no cost per prompt token beyond the page
  // list) or from zero. Its worst case is promised: later `reserve`s within `max_tokens` cannot fail. Where a copy of the state does
  // not fit and nobody else pins the snapshot, the sequence takes the snapshot itself. kResourceExhausted: does not fit now.
  Result<SequenceState> open(Match match, int32_t max_tokens);

  // Makes slots [num_tokens, num_slots) writable: adds zeroed pages, copies a shared partial page first. num_slots <= max_tokens.
  void reserve(SequenceState& sequence, int32_t num_slots);

  // A slot for a state captured in passing, content unknown. Evicts for it; kResourceExhausted when nothing may go.
  Result<StateSlot> capture_slot();

  // Files the state in `captured`, taken after exactly `num_tokens` tokens of the running sequence (which may have gone on since).
  StoreResult store(const SequenceState& sequence, int32_t num_tokens, StateSlot captured, SnapshotKind kind);
  // Files a sequence that ends or is set aside, as it stands: nothing is copied.
  StoreResult store(SequenceState&& sequence, SnapshotKind kind);

  // Evicts every snapshot that is not pinned.
  void clear();

  CacheStats stats() const;                // O(snapshots)
  std::vector<SnapshotInfo> list() const;  // parents before children

  // Recomputes every count from its holders and aborts on a difference: budget, references, keys. For tests; O(everything).
  // `sequences`: all that are open; `num_loose_slots`: capture slots not yet stored.
  void check_invariants(std::span<const SequenceState* const> sequences, size_t num_loose_slots) const;

 private:
  PrefixCache(const CacheSpec& spec, CacheClock clock);
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace espalier
