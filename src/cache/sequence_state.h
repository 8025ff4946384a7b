// What a running sequence owns in the cache: its page table (shared prefix, then private pages), its state slot, and the tokens that
// state has absorbed. Made by PrefixCache::open. There is no rollback: a recurrent state cannot be cut. Move-only; must not outlive the
// cache. Engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "cache/memory_budget.h"
#include "cache/page_table.h"
#include "cache/state_slot.h"

namespace espalier {

class SequenceState {
 public:
  SequenceState() = default;  // empty: only to be assigned to
  SequenceState(SequenceState&&) noexcept = default;
  SequenceState& operator=(SequenceState&&) noexcept = default;

  int32_t num_tokens() const { return static_cast<int32_t>(tokens_.size()); }
  std::span<const TokenId> tokens() const { return tokens_; }  // absorbed by the state, the hot prefix included
  int32_t num_hot() const { return num_hot_; }                 // tokens that came from a snapshot: exactly those not computed again
  int32_t max_tokens() const { return max_tokens_; }           // what it was admitted for
  std::span<const int32_t> page_table() const { return pages_.ids(); }
  int32_t state_slot() const { return slot_.index(); }
  uint64_t settings() const { return settings_; }

  // The model has advanced the state over `tokens` and written their keys and values. Pages must have been reserved for them.
  void commit(std::span<const TokenId> tokens);

 private:
  friend class PrefixCache;
  std::vector<TokenId> tokens_;
  PageTable pages_;
  StateSlot slot_;
  BudgetPromise promise_;
  int32_t page_size_ = 0;
  int32_t num_hot_ = 0;
  int32_t max_tokens_ = 0;
  uint64_t settings_ = 0;
};

}  // namespace espalier
