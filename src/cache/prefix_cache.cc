#include "cache/prefix_cache.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/format.h"
#include "cache/snapshot_tree.h"

namespace espalier {
namespace {

// Freed memory kept for quick reuse, so that a full cache does not hand every page to the system and take it back at once.
constexpr size_t kKeepFreeShare = 16;  // pages worth 1/16 of the budget
constexpr size_t kKeepFreePages = 64;  // at least
constexpr size_t kKeepFreeStates = 4;

double mebibytes(size_t bytes) { return static_cast<double>(bytes) / 1048576.0; }

}  // namespace

struct PrefixCache::Parts {
  Parts(const CacheSpec& cache_spec, CacheClock clock)
      : spec(cache_spec),
        budget(cache_spec.budget_bytes),
        tree(cache_spec.kv.page_bytes(), cache_spec.state.slot_bytes(), std::move(clock)) {}

  size_t pages_for(size_t num_tokens) const {
    const auto page_size = static_cast<size_t>(spec.kv.page_size);
    return (num_tokens + page_size - 1) / page_size;
  }
  size_t page_bytes() const { return pages->block_bytes(); }
  size_t state_bytes() const { return states->block_bytes(); }

  size_t evictable_bytes() const;
  size_t fixed_bytes() const { return pages->used_bytes() + states->used_bytes() - evictable_bytes() + budget.promised(); }
  // Bytes that can be had now without touching running sequences, pins and what was promised.
  size_t obtainable_bytes() const;
  bool promises_hold() const { return fixed_bytes() <= budget.limit(); }
  size_t bytes_to_open(const Match& match, size_t max_tokens) const;
  size_t bytes_to_take(const Match& match, size_t max_tokens) const;
  bool can_take(const Match& match) const { return match.snapshot && match.snapshot->pins == 1; }

  // Evicts for `whom` where it must; aborts when nothing may go: ask obtainable_bytes first.
  int32_t take_block(BlockPool& pool, BlockContent content, EvictionReason whom);
  void evict(Snapshot& snapshot, EvictionReason reason);
  StoreResult file(std::span<const TokenId> tokens, uint64_t settings, PageTable table, StateSlot slot, SnapshotKind kind);
  void refresh(Snapshot& snapshot);
  PinnedSnapshot try_pin(Snapshot& snapshot) const;  // empty where the pin would hold memory that is promised to a running sequence

  CacheSpec spec;
  MemoryBudget budget;
  std::optional<BlockPool> pages;
  std::optional<BlockPool> states;
  SnapshotTree tree;
  CacheStats counters;
  mutable std::vector<int32_t> scratch;  // per page, zero between uses
};

size_t PrefixCache::Parts::evictable_bytes() const {
  size_t bytes = 0;
  for (const auto& snapshot : tree.snapshots()) {
    if (snapshot->pins > 0) continue;
    bytes += state_bytes();
    for (const int32_t page : snapshot->pages.ids()) ++scratch[static_cast<size_t>(page)];
  }
  for (const auto& snapshot : tree.snapshots()) {
    if (snapshot->pins > 0) continue;
    for (const int32_t page : snapshot->pages.ids()) {
      int32_t& holders = scratch[static_cast<size_t>(page)];
      if (holders > 0 && holders == pages->references(page)) bytes += page_bytes();
      holders = 0;
    }
  }
  return bytes;
}

size_t PrefixCache::Parts::obtainable_bytes() const {
  const size_t fixed = fixed_bytes();
  return fixed < budget.limit() ? budget.limit() - fixed : 0;
}

size_t PrefixCache::Parts::bytes_to_open(const Match& match, size_t max_tokens) const {
  const size_t shared = match.num_hot / static_cast<size_t>(spec.kv.page_size);  // a shared partial page is copied when first written
  return state_bytes() + (pages_for(max_tokens) - shared) * page_bytes();
}

size_t PrefixCache::Parts::bytes_to_take(const Match& match, size_t max_tokens) const {
  const PageTable& table = match.snapshot->pages;
  const bool partial_shared = match.num_hot % static_cast<size_t>(spec.kv.page_size) != 0 && table.shared(table.size() - 1);
  return (pages_for(max_tokens) - table.size() + (partial_shared ? 1 : 0)) * page_bytes();
}

int32_t PrefixCache::Parts::take_block(BlockPool& pool, BlockContent content, EvictionReason whom) {
  for (;;) {
    if (const std::optional<int32_t> block = pool.try_take(content)) return *block;
    const size_t needed = pool.block_bytes();
    const size_t trimmed = pages->trim(needed);
    if (trimmed + (trimmed < needed ? states->trim(needed - trimmed) : 0) > 0) continue;
    Snapshot* least = tree.least_valuable();
    ESPALIER_CHECK(least != nullptr && "the cache promised more than it has");
    evict(*least, whom);
  }
}

void PrefixCache::Parts::evict(Snapshot& snapshot, EvictionReason reason) {
  tree.remove(snapshot);
  ++counters.evictions[static_cast<size_t>(reason)];
}

void PrefixCache::Parts::refresh(Snapshot& snapshot) {
  tree.refreshed(snapshot);
  ++counters.snapshots_refreshed;
}

PinnedSnapshot PrefixCache::Parts::try_pin(Snapshot& snapshot) const {
  PinnedSnapshot pin(snapshot);
  if (!promises_hold()) pin.release();
  return pin;
}

StoreResult PrefixCache::Parts::file(std::span<const TokenId> tokens, uint64_t settings, PageTable table, StateSlot slot,
                                     SnapshotKind kind) {
  ESPALIER_CHECK(table.size() == pages_for(tokens.size()));
  Snapshot snapshot;
  snapshot.key = token_key(tokens);
  snapshot.kind = kind;
  snapshot.settings = settings;
  snapshot.pages = std::move(table);
  snapshot.slot = std::move(slot);
  ++counters.snapshots_stored;
  // It may share pages with a relative that could have been evicted so far: its pin is as conditional as any.
  return {Stored::kNew, try_pin(tree.add(tokens, std::move(snapshot), spec.kv.page_size))};
}

Result<std::unique_ptr<PrefixCache>> PrefixCache::create(const CacheSpec& spec, Backend& backend, CacheClock clock) {
  const size_t page_bytes = spec.kv.page_size > 0 ? spec.kv.page_bytes() : 0;
  const size_t state_bytes = spec.state.slot_bytes();
  if (page_bytes == 0 || state_bytes == 0) {
    return make_error(ErrorCode::kInvalidArgument, "cache: a page of {} bytes and a state of {} bytes: both must be positive", page_bytes,
                      state_bytes);
  }
  if (spec.budget_bytes < page_bytes + state_bytes) {
    return make_error(ErrorCode::kInvalidArgument, "cache: a budget of {} bytes is below one page ({} bytes) and one state ({} bytes)",
                      spec.budget_bytes, page_bytes, state_bytes);
  }
  std::unique_ptr<PrefixCache> cache(new PrefixCache(spec, std::move(clock)));
  Parts& parts = *cache->parts_;
  const size_t keep_pages = std::max(kKeepFreePages, spec.budget_bytes / kKeepFreeShare / page_bytes);
  ESPALIER_ASSIGN(parts.pages, BlockPool::create(backend, parts.budget, page_bytes, keep_pages));
  ESPALIER_ASSIGN(parts.states, BlockPool::create(backend, parts.budget, state_bytes, kKeepFreeStates));
  parts.scratch.resize(static_cast<size_t>(parts.pages->capacity()));
  return cache;
}

PrefixCache::PrefixCache(const CacheSpec& spec, CacheClock clock) : parts_(std::make_unique<Parts>(spec, std::move(clock))) {}

PrefixCache::~PrefixCache() = default;

KvView PrefixCache::kv() const { return {parts_->pages->data(), parts_->spec.kv}; }
StateView PrefixCache::state() const { return {parts_->states->data(), parts_->spec.state}; }

Match PrefixCache::match(std::span<const TokenId> prompt, size_t max_tokens, uint64_t settings) {
  Match match = parts_->tree.match(prompt, max_tokens, settings);
  if (match.snapshot && !parts_->promises_hold()) {
    match.snapshot.release();
    match.num_hot = 0;
    match.reason = ColdReason::kNoRoom;
  }
  return match;
}

Match PrefixCache::match_of(const PinnedSnapshot& snapshot) {
  Match match;
  match.settings = snapshot->settings;
  match.num_hot = match.num_known = snapshot->key.count;
  match.snapshot = PinnedSnapshot(*snapshot.snapshot_);
  return match;
}

std::vector<int32_t> PrefixCache::wanted_captures(std::span<const TokenId> prompt, int32_t num_hot, uint64_t settings) const {
  return parts_->tree.wanted_captures(prompt, static_cast<size_t>(num_hot), settings, kMaxWantedCaptures);
}

size_t PrefixCache::bytes_for(int32_t max_tokens) const {
  return parts_->state_bytes() + parts_->pages_for(static_cast<size_t>(max_tokens)) * parts_->page_bytes();
}

Status PrefixCache::check_can_ever_fit(int32_t max_tokens) const {
  const size_t bytes = bytes_for(max_tokens);
  if (bytes <= parts_->budget.limit()) return Ok{};
  const size_t num_pages = parts_->pages_for(static_cast<size_t>(max_tokens));
  return make_error(ErrorCode::kResourceExhausted,
                    "{} tokens need {:.1f} MiB of cache ({} pages of {:.2f} MiB and a state of {:.2f} MiB); the budget is {:.1f} MiB",
                    max_tokens, mebibytes(bytes), num_pages, mebibytes(parts_->page_bytes()), mebibytes(parts_->state_bytes()),
                    mebibytes(parts_->budget.limit()));
}

Status PrefixCache::check_fits_now(const Match& match, int32_t max_tokens) const {
  ESPALIER_CHECK(max_tokens > 0 && static_cast<size_t>(max_tokens) >= match.num_hot);
  const auto tokens = static_cast<size_t>(max_tokens);
  const size_t obtainable = parts_->obtainable_bytes();
  const size_t bytes = parts_->bytes_to_open(match, tokens);
  if (bytes <= obtainable) return Ok{};
  if (parts_->can_take(match) && parts_->bytes_to_take(match, tokens) <= obtainable) return Ok{};
  return make_error(ErrorCode::kResourceExhausted,
                    "{} tokens, {} of them hot, need {:.1f} MiB of cache; {:.1f} MiB of {:.1f} MiB can be had beside running sequences "
                    "({:.1f} MiB promised)",
                    max_tokens, match.num_hot, mebibytes(bytes), mebibytes(obtainable), mebibytes(parts_->budget.limit()),
                    mebibytes(parts_->budget.promised()));
}

Result<SequenceState> PrefixCache::open(Match match, int32_t max_tokens) {
  ESPALIER_TRY(check_fits_now(match, max_tokens));
  Parts& parts = *parts_;
  const auto tokens = static_cast<size_t>(max_tokens);
  const bool copy = parts.bytes_to_open(match, tokens) <= parts.obtainable_bytes();

  SequenceState sequence;
  sequence.page_size_ = parts.spec.kv.page_size;
  sequence.max_tokens_ = max_tokens;
  sequence.num_hot_ = static_cast<int32_t>(match.num_hot);
  sequence.settings_ = match.settings;
  sequence.tokens_.reserve(tokens);
  sequence.pages_ = PageTable(*parts.pages);
  if (match.snapshot) {
    Snapshot& snapshot = *match.snapshot.snapshot_;
    ESPALIER_CHECK(snapshot.key.count == match.num_hot && snapshot.settings == match.settings);
    const std::vector<TokenId> hot = parts.tree.tokens(snapshot);
    sequence.tokens_.insert(sequence.tokens_.end(), hot.begin(), hot.end());
    parts.tree.used(snapshot);
    ++parts.counters.sequences_hot;
    parts.counters.tokens_hot += match.num_hot;
  }
  ++parts.counters.sequences_opened;

  if (!copy) {
    sequence.promise_ = BudgetPromise(parts.budget, parts.bytes_to_take(match, tokens));
    Snapshot& snapshot = *match.snapshot.snapshot_;
    match.snapshot.release();
    Snapshot taken = parts.tree.remove(snapshot);
    ++parts.counters.evictions[static_cast<size_t>(EvictionReason::kTaken)];
    sequence.pages_ = std::move(taken.pages);
    sequence.slot_ = std::move(taken.slot);
    return sequence;
  }
  const size_t bytes = parts.bytes_to_open(match, tokens);
  const int32_t slot = parts.take_block(*parts.states, match.snapshot ? BlockContent::kUnknown : BlockContent::kZero, EvictionReason::kSequence);
  sequence.slot_ = StateSlot(*parts.states, slot);
  sequence.promise_ = BudgetPromise(parts.budget, bytes - parts.state_bytes());
  if (match.snapshot) {
    parts.states->copy(match.snapshot->slot.index(), slot);
    sequence.pages_ = match.snapshot->pages.share(match.snapshot->pages.size());
  }
  return sequence;
}

void PrefixCache::reserve(SequenceState& sequence, int32_t num_slots) {
  ESPALIER_CHECK(num_slots >= sequence.num_tokens() && num_slots <= sequence.max_tokens_);
  Parts& parts = *parts_;
  PageTable& table = sequence.pages_;
  const auto first = static_cast<size_t>(sequence.num_tokens() / sequence.page_size_);  // the first page that will be written
  if (num_slots > sequence.num_tokens() && first < table.size() && table.shared(first)) {
    const int32_t copy = parts.take_block(*parts.pages, BlockContent::kUnknown, EvictionReason::kSequence);
    sequence.promise_.use(parts.page_bytes());
    parts.pages->copy(table[first], copy);
    table.replace(first, copy);
  }
  while (table.size() < parts.pages_for(static_cast<size_t>(num_slots))) {
    table.append(parts.take_block(*parts.pages, BlockContent::kZero, EvictionReason::kSequence));
    sequence.promise_.use(parts.page_bytes());
  }
}

Result<StateSlot> PrefixCache::capture_slot() {
  Parts& parts = *parts_;
  const size_t obtainable = parts.obtainable_bytes();
  if (obtainable < parts.state_bytes()) {
    ++parts.counters.snapshots_refused;
    return make_error(ErrorCode::kResourceExhausted, "a captured state needs {:.1f} MiB of cache; {:.1f} MiB of {:.1f} MiB can be had",
                      mebibytes(parts.state_bytes()), mebibytes(obtainable), mebibytes(parts.budget.limit()));
  }
  return StateSlot(*parts.states, parts.take_block(*parts.states, BlockContent::kUnknown, EvictionReason::kSnapshot));
}

StoreResult PrefixCache::store(const SequenceState& sequence, int32_t num_tokens, StateSlot captured, SnapshotKind kind) {
  ESPALIER_CHECK(num_tokens > 0 && num_tokens <= sequence.num_tokens() && captured);
  Parts& parts = *parts_;
  const std::span<const TokenId> tokens = sequence.tokens().first(static_cast<size_t>(num_tokens));
  if (Snapshot* held = parts.tree.find(tokens, sequence.settings_)) {
    parts.refresh(*held);
    captured = StateSlot();
    return {Stored::kRefreshed, parts.try_pin(*held)};
  }
  const size_t num_pages = parts.pages_for(tokens.size());
  const auto num_finished = static_cast<size_t>(sequence.num_tokens() / sequence.page_size_);  // pages the sequence will not write again
  PageTable table = sequence.pages_.share(std::min(num_pages, num_finished));
  if (table.size() < num_pages) {
    if (parts.obtainable_bytes() < parts.page_bytes()) {
      ++parts.counters.snapshots_refused;
      return {};
    }
    const int32_t copy = parts.take_block(*parts.pages, BlockContent::kUnknown, EvictionReason::kSnapshot);
    parts.pages->copy(sequence.pages_[num_pages - 1], copy);
    table.append(copy);
  }
  return parts.file(tokens, sequence.settings_, std::move(table), std::move(captured), kind);
}

StoreResult PrefixCache::store(SequenceState&& sequence, SnapshotKind kind) {
  SequenceState ended = std::move(sequence);
  if (ended.tokens_.empty()) return {Stored::kNothing, {}};
  Parts& parts = *parts_;
  if (Snapshot* held = parts.tree.find(ended.tokens_, ended.settings_)) {
    parts.refresh(*held);
    ended = SequenceState();
    return {Stored::kRefreshed, parts.try_pin(*held)};
  }
  ended.pages_.truncate(parts.pages_for(ended.tokens_.size()));
  return parts.file(ended.tokens_, ended.settings_, std::move(ended.pages_), std::move(ended.slot_), kind);
}

void PrefixCache::clear() {
  for (size_t i = parts_->tree.snapshots().size(); i-- > 0;) {
    Snapshot& snapshot = *parts_->tree.snapshots()[i];
    if (snapshot.pins == 0) parts_->evict(snapshot, EvictionReason::kCleared);
  }
}

int64_t PrefixCache::max_tokens_that_fit() const {
  const size_t limit = parts_->budget.limit();
  const size_t state = parts_->states->block_bytes();
  if (limit < state) return 0;
  const size_t pages = (limit - state) / parts_->pages->block_bytes();
  return static_cast<int64_t>(std::min(pages, size_t{INT32_MAX} / static_cast<size_t>(parts_->spec.kv.page_size))) * parts_->spec.kv.page_size;
}

CacheStats PrefixCache::stats() const {
  CacheStats stats = parts_->counters;
  const BlockPool& pages = *parts_->pages;
  const BlockPool& states = *parts_->states;
  stats.budget_bytes = parts_->budget.limit();
  stats.held_bytes = parts_->budget.held();
  stats.peak_bytes = parts_->budget.peak();
  stats.page_bytes_used = pages.used_bytes();
  stats.state_bytes_used = states.used_bytes();
  stats.kept_free_bytes = pages.kept_free_bytes() + states.kept_free_bytes();
  stats.promised_bytes = parts_->budget.promised();
  stats.bytes_per_page = pages.block_bytes();
  stats.bytes_per_state = states.block_bytes();
  stats.tokens_per_page = static_cast<size_t>(parts_->spec.kv.page_size);
  stats.num_snapshots = parts_->tree.snapshots().size();
  for (const auto& snapshot : parts_->tree.snapshots()) stats.num_pinned += snapshot->pins > 0 ? 1 : 0;
  stats.num_known_tokens = parts_->tree.num_known_tokens();
  return stats;
}

std::vector<SnapshotInfo> PrefixCache::list() const { return parts_->tree.list(); }

void PrefixCache::check_invariants(std::span<const SequenceState* const> sequences, size_t num_loose_slots) const {
  const Parts& parts = *parts_;
  parts.tree.check_invariants();
  std::vector<int32_t> page_holders(static_cast<size_t>(parts.pages->capacity()));
  std::vector<int32_t> slot_holders(static_cast<size_t>(parts.states->capacity()));
  const auto count = [&](std::span<const int32_t> pages, int32_t slot) {
    for (const int32_t page : pages) ++page_holders[static_cast<size_t>(page)];
    ++slot_holders[static_cast<size_t>(slot)];
  };
  size_t promised = 0;
  for (const auto& snapshot : parts.tree.snapshots()) {
    ESPALIER_CHECK(snapshot->pages.size() == parts.pages_for(snapshot->key.count));
    count(snapshot->pages.ids(), snapshot->slot.index());
  }
  for (const SequenceState* sequence : sequences) {
    count(sequence->page_table(), sequence->state_slot());
    promised += sequence->promise_.bytes();
  }
  size_t num_pages = 0;
  for (int32_t page = 0; page < parts.pages->capacity(); ++page) {
    ESPALIER_CHECK(page_holders[static_cast<size_t>(page)] == parts.pages->references(page));
    if (page_holders[static_cast<size_t>(page)] > 0) ++num_pages;
  }
  size_t num_slots = num_loose_slots;
  for (const int32_t holders : slot_holders) {
    ESPALIER_CHECK(holders <= 1);  // a state belongs to one sequence or one snapshot
    if (holders == 1) ++num_slots;
  }
  ESPALIER_CHECK(num_pages == parts.pages->num_used() && num_slots == parts.states->num_used());
  const size_t in_use = parts.pages->used_bytes() + parts.states->used_bytes();
  const size_t kept_free = parts.pages->kept_free_bytes() + parts.states->kept_free_bytes();
  ESPALIER_CHECK(parts.budget.held() == in_use + kept_free && parts.budget.held() <= parts.budget.limit());
  ESPALIER_CHECK(parts.budget.promised() == promised);
  ESPALIER_CHECK(parts.promises_hold());
}

}  // namespace espalier
