// Random lives of a cache against a naive model: which prefixes were ever filed, and what a state and its keys must contain. Two tokens of
// vocabulary make prompts share, part and coincide all the time; budgets from one sequence upwards make everything evict and refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "cache/cache_test_support.h"

namespace espalier {
namespace {

struct Budget {
  size_t num_pages;
  size_t num_states;
  uint32_t seed;
};

void PrintTo(const Budget& budget, std::ostream* out) {
  *out << budget.num_pages << " pages, " << budget.num_states << " states, seed " << budget.seed;
}

class RandomLife : public ::testing::TestWithParam<Budget> {
 protected:
  static constexpr size_t kMaxTokens = 30;

  RandomLife() : random_(GetParam().seed), harness_(small_spec(GetParam().num_pages, GetParam().num_states)) {}

  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }
  Tokens random_tokens(size_t count) {
    Tokens tokens(count);
    for (TokenId& token : tokens) token = static_cast<TokenId>(below(16) == 0);
    return tokens;
  }

  void open() {
    const Tokens prompt = random_tokens(1 + below(kMaxTokens - 1));
    Match match = harness_->match(prompt, prompt.size() - below(2));
    ASSERT_LE(match.num_hot, match.num_known);
    if (match.snapshot) harness_.expect_exact(match.snapshot, std::span(prompt).first(match.num_hot));
    const auto max_tokens = static_cast<int32_t>(std::max(prompt.size(), match.num_hot) + below(8));
    const size_t num_hot = match.num_hot;
    const bool fits = harness_->check_fits_now(match, max_tokens).ok();
    Result<SequenceState> opened = harness_->open(std::move(match), max_tokens);
    ASSERT_EQ(opened.ok(), fits);
    if (!fits) return;
    ASSERT_TRUE(harness_->check_can_ever_fit(max_tokens).ok());
    ASSERT_EQ(static_cast<size_t>(opened->num_hot()), num_hot);
    harness_.expect_exact(*opened);
    sequences_.push_back(std::make_unique<SequenceState>(std::move(opened).value()));
  }

  // Goes on by a few tokens within what was promised; half the time with a state captured in passing.
  void extend() {
    SequenceState& sequence = *sequences_[below(sequences_.size())];
    const auto room = static_cast<size_t>(sequence.max_tokens() - sequence.num_tokens());
    if (room == 0) return;
    const Tokens tokens = random_tokens(1 + below(room));
    if (below(2) == 0) return harness_.compute(sequence, tokens);
    Result<StateSlot> slot = harness_->capture_slot();
    if (!slot.ok()) return harness_.compute(sequence, tokens);
    const auto at = static_cast<int32_t>(static_cast<size_t>(sequence.num_tokens()) + 1 + below(tokens.size()));
    harness_.compute(sequence, tokens, at, &*slot);
    const Tokens prefix(sequence.tokens().begin(), sequence.tokens().begin() + at);
    StoreResult result = harness_->store(sequence, at, std::move(slot).value(), SnapshotKind::kDivergence);
    if (result.stored != Stored::kNoRoom) filed_.insert(prefix);
    keep(std::move(result.snapshot), prefix);
  }

  void finish() {
    const size_t i = below(sequences_.size());
    const Tokens tokens(sequences_[i]->tokens().begin(), sequences_[i]->tokens().end());
    SequenceState sequence = std::move(*sequences_[i]);
    sequences_.erase(sequences_.begin() + static_cast<std::ptrdiff_t>(i));
    if (below(3) == 0) return;  // cancelled: nothing is kept
    StoreResult result = harness_->store(std::move(sequence), SnapshotKind::kReplyEnd);
    ASSERT_EQ(result.stored == Stored::kNothing, tokens.empty());
    ASSERT_NE(result.stored, Stored::kNoRoom) << "keeping what is there needs no room";
    if (tokens.empty()) return;
    filed_.insert(tokens);
    keep(std::move(result.snapshot), tokens);
  }

  // Checks what was filed; now and then its pin stays for a while.
  void keep(PinnedSnapshot snapshot, const Tokens& tokens) {
    if (!snapshot) return;
    harness_.expect_exact(snapshot, tokens);
    if (below(4) > 0) return;
    pins_.push_back(std::move(snapshot));
    pinned_.push_back(tokens);
  }

  void pin() {
    if (filed_.empty()) return;
    const Tokens& prompt = *std::next(filed_.begin(), static_cast<std::ptrdiff_t>(below(filed_.size())));
    Match match = harness_->match(prompt, prompt.size());
    if (!match.snapshot) return;
    pinned_.push_back(prompt);
    pinned_.back().resize(match.num_hot);
    pins_.push_back(std::move(match.snapshot));
  }

  void unpin() {
    const size_t i = below(pins_.size());
    harness_.expect_exact(pins_[i], pinned_[i]);  // whatever happened since
    pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(i));
    pinned_.erase(pinned_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // The longest of the prefixes that are held, found by trying each: what match must find by walking.
  void compare_match() {
    std::set<Tokens> held;
    for (const Tokens& prefix : filed_) {
      const Match match = harness_->match(prefix, prefix.size());
      if (match.reason == ColdReason::kNoRoom) return;  // all memory is promised
      if (match.num_hot == prefix.size()) held.insert(prefix);
    }
    ASSERT_EQ(held.size(), harness_->stats().num_snapshots);
    filed_ = held;
    const Tokens prompt = random_tokens(1 + below(kMaxTokens));
    const size_t limit = prompt.size() - below(2);
    size_t longest = 0;
    size_t known = 0;
    for (const Tokens& prefix : held) {
      const auto parted = std::mismatch(prefix.begin(), prefix.end(), prompt.begin(), prompt.end()).first;
      known = std::max(known, static_cast<size_t>(parted - prefix.begin()));
      if (parted == prefix.end() && prefix.size() <= limit) longest = std::max(longest, prefix.size());
    }
    const Match match = harness_->match(prompt, limit);
    ASSERT_EQ(match.num_known, known);
    ASSERT_EQ(match.num_hot, longest);
    ++num_compared_;
    for (const int32_t at : harness_->wanted_captures(prompt, static_cast<int32_t>(longest))) {
      ASSERT_GT(static_cast<size_t>(at), longest);
      ASSERT_LE(static_cast<size_t>(at), known);
      ASSERT_FALSE(held.contains(Tokens(prompt.begin(), prompt.begin() + at)));
    }
  }

  void check() {
    harness_.running.clear();
    for (const auto& sequence : sequences_) harness_.running.push_back(sequence.get());
    harness_.check();
  }

  std::mt19937 random_;
  CacheHarness harness_;
  std::vector<std::unique_ptr<SequenceState>> sequences_;
  std::vector<PinnedSnapshot> pins_;
  std::vector<Tokens> pinned_;
  size_t num_compared_ = 0;
  std::set<Tokens> filed_;  // at least those that are held
};

// I4, I5: the budget is hard, after every operation.
TEST_P(RandomLife, ContentsAreExactTheBudgetHoldsAndNothingLeaks) {
  for (int step = 0; step < 3000; ++step) {
    SCOPED_TRACE(::testing::Message() << "seed " << GetParam().seed << " step " << step);
    harness_.now += std::chrono::seconds(below(40));
    switch (below(8)) {
      case 0:
      case 1:
        open();
        break;
      case 2:
      case 3:
      case 4:
        if (!sequences_.empty()) extend();
        break;
      case 5:
        if (!sequences_.empty()) finish();
        break;
      case 6:
        below(4) > 0 && !pins_.empty() ? unpin() : pin();
        break;
      case 7:
        below(50) == 0 ? harness_->clear() : compare_match();
        break;
    }
    check();
    for (const auto& sequence : sequences_) harness_.expect_exact(*sequence);
    if (HasFailure()) return;
  }
  sequences_.clear();
  while (!pins_.empty()) unpin();
  harness_->clear();
  check();
  const CacheStats stats = harness_->stats();
  EXPECT_EQ(stats.num_snapshots, 0u);
  EXPECT_EQ(stats.num_known_tokens, 0u);
  EXPECT_EQ(stats.page_bytes_used + stats.state_bytes_used + stats.promised_bytes, 0u);
  // The life was eventful: none of the checks above was idle.
  EXPECT_GT(stats.sequences_hot, 50u);
  EXPECT_GT(num_compared_, 50u);
  uint64_t num_evicted = 0;
  for (const EvictionReason reason : {EvictionReason::kSequence, EvictionReason::kSnapshot, EvictionReason::kTaken}) {
    num_evicted += stats.evictions[static_cast<size_t>(reason)];
  }
  EXPECT_GT(num_evicted, 10u);
}

INSTANTIATE_TEST_SUITE_P(Budgets, RandomLife,
                         ::testing::Values(Budget{10, 1, 1}, Budget{10, 2, 2}, Budget{16, 4, 3}, Budget{24, 5, 4}, Budget{40, 8, 5},
                                           Budget{200, 40, 6}));

}  // namespace
}  // namespace espalier
