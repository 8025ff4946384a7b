#include "cache/prefix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/cache_test_support.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kAmplePages = 20000;
constexpr size_t kAmpleStates = 400;

SequenceState open_cold(CacheHarness& harness, int32_t max_tokens) { return std::move(harness->open(Match{}, max_tokens)).value(); }

TEST(PrefixCache, StateOfTheTestModelIs144BytesAndItsPage64) {
  const CacheSpec spec = small_spec(1, 1);
  EXPECT_EQ(spec.kv.page_bytes(), 64u);
  EXPECT_EQ(spec.state.slot_bytes(), 144u);
}

TEST(PrefixCache, EmptyCacheSaysNoCommonPrefix) {
  CacheHarness harness(small_spec(8, 2));
  const Tokens prompt = iota_tokens(0, 10);
  const Match match = harness->match(prompt, 9);
  EXPECT_FALSE(match.snapshot);
  EXPECT_EQ(match.num_hot, 0u);
  EXPECT_EQ(match.reason, ColdReason::kNoCommonPrefix);
  EXPECT_EQ(match.explanation(), "no common prefix with any known prompt");
}

TEST(PrefixCache, ResumedSequenceEqualsOneComputedFromNothing) {
  CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
  for (size_t length = 1; length <= 13; ++length) {
    const Tokens first = iota_tokens(static_cast<TokenId>(1000 * length), length);
    harness.serve(first, {}, 0);
    const Tokens grown = joined(first, iota_tokens(7, 6));
    EXPECT_EQ(harness.serve(grown).num_hot, length);  // serve compares every key and the state
  }
}

TEST(PrefixCache, HotAndComputedTokensAddUpToThePrompt_B11) {
  CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
  Tokens prompt = iota_tokens(0, 11);
  for (int turn = 0; turn < 6; ++turn) {
    const auto served = harness.serve(prompt, iota_tokens(500 * turn, 5));
    EXPECT_EQ(served.num_hot + served.num_computed, prompt.size());
    prompt = joined(prompt, iota_tokens(90 * turn, 23));
  }
}

TEST(PrefixCache, GrowingConversationComputesOnlyWhatIsNew_A1) {
  CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
  Tokens prompt = iota_tokens(0, 100);
  harness.serve(prompt, iota_tokens(1, 9));
  for (int turn = 1; turn < 6; ++turn) {
    const size_t previous = prompt.size();
    prompt = joined(joined(prompt, iota_tokens(turn == 1 ? 1 : 1000 * turn, 9)), iota_tokens(5000 * turn, 20));
    const auto served = harness.serve(prompt, iota_tokens(1000 * (turn + 1), 9));
    EXPECT_EQ(served.num_hot, previous + 9) << "turn " << turn;
    EXPECT_EQ(served.reason, ColdReason::kNewText);
  }
}

TEST(PrefixCache, ShortPromptsAreReusedLikeLongOnes_A2) {
  for (const size_t length : {50u, 500u, 5000u}) {
    CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
    const Tokens prompt = iota_tokens(0, length);
    harness.serve(prompt);
    EXPECT_EQ(harness.serve(joined(prompt, iota_tokens(9, 10))).num_hot, length);
  }
}

TEST(PrefixCache, RepeatedPromptIsHotUpToItsTail_A11) {
  CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
  const Tokens prompt = iota_tokens(0, 1200);
  harness.serve(prompt, {}, 3);
  EXPECT_EQ(harness.serve(prompt, {}, 3).num_hot, 1197u);
}

TEST(PrefixCache, ReuseDoesNotDependOnPageOrStateSize_A7) {
  CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
  for (size_t length = 64; length <= 2048; length += 64) {
    for (const size_t odd : {length - 1, length}) {
      const Tokens prompt = iota_tokens(static_cast<TokenId>(10000 * odd), odd);
      harness.serve(prompt, {}, 3);
      EXPECT_EQ(harness.serve(joined(std::span(prompt).first(odd - 3), iota_tokens(3, 7))).num_hot, odd - 3);
    }
    harness->clear();
  }
}

TEST(PrefixCache, SharedPrefixIsHotFromTheThirdRequestOn_A8) {
  CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
  const Tokens shared = iota_tokens(0, 1500);
  for (int request = 1; request <= 8; ++request) {
    const Tokens prompt = joined(shared, iota_tokens(100000 * request, 700));
    const auto served = harness.serve(prompt);
    if (request == 1) {
      EXPECT_EQ(served.reason, ColdReason::kNoCommonPrefix);
    }
    if (request == 2) {
      EXPECT_EQ(served.reason, ColdReason::kNoSnapshot);
      EXPECT_THAT(served.explanation, HasSubstr("1500 tokens are known, 0 usable"));
    }
    if (request >= 3) {
      EXPECT_EQ(served.num_hot, 1500u) << "request " << request;
      EXPECT_EQ(served.reason, ColdReason::kDiverged);
    }
  }
}

TEST(PrefixCache, PromptsThatPartedUncapturedAreCapturedByALaterOne_A8) {
  CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
  const Tokens shared = iota_tokens(0, 40);
  for (int request = 1; request <= 2; ++request) {  // no room for captures, say
    SequenceState sequence = open_cold(harness, 60);
    harness.compute(sequence, joined(shared, iota_tokens(1000 * request, 20)));
    harness->store(std::move(sequence), SnapshotKind::kReplyEnd);
  }
  const Tokens third = joined(shared, iota_tokens(9000, 20));
  EXPECT_THAT(harness->wanted_captures(third, 0), ElementsAre(40));
  EXPECT_THAT(harness->wanted_captures(third, 40), IsEmpty());
  EXPECT_THAT(harness->wanted_captures(shared, 0), IsEmpty()) << "the end of a prompt is captured anyway";
}

TEST(PrefixCache, StoredTwiceIsKeptOnce) {
  CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
  const Tokens prompt = iota_tokens(0, 10);
  SequenceState a = open_cold(harness, 10);
  SequenceState b = open_cold(harness, 10);
  harness.compute(a, prompt);
  harness.compute(b, prompt);
  EXPECT_EQ(harness->store(std::move(a), SnapshotKind::kReplyEnd).stored, Stored::kNew);
  EXPECT_EQ(harness->store(std::move(b), SnapshotKind::kReplyEnd).stored, Stored::kRefreshed);
  EXPECT_EQ(harness->stats().num_snapshots, 1u);
  EXPECT_EQ(harness->stats().page_bytes_used, 3u * 64);
  harness.check();
}

TEST(PrefixCache, PagesOfACommonPrefixComputedTwiceAreKeptOnce) {
  CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
  const Tokens shared = iota_tokens(0, 42);  // ten whole pages and two tokens
  for (int request = 1; request <= 3; ++request) {
    SequenceState sequence = open_cold(harness, 50);
    harness.compute(sequence, joined(shared, iota_tokens(1000 * request, 8)));
    const StoreResult result = harness->store(std::move(sequence), SnapshotKind::kReplyEnd);
    harness.expect_exact(result.snapshot, joined(shared, iota_tokens(1000 * request, 8)));
  }
  EXPECT_EQ(harness->stats().page_bytes_used, (10 + 3 * 3) * 64u);
  EXPECT_EQ(harness->stats().num_known_tokens, 42u + 3 * 8);
}

TEST(PrefixCache, RestoreCopiesOneStateAndAtMostOnePageWhateverTheLength_A4) {
  for (const size_t length : {1023u, 32767u}) {
    CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
    const Tokens prompt = iota_tokens(0, length);
    harness.serve(prompt, {}, 0);
    const size_t before = harness.backend.copy_ops.bytes_copied;
    SequenceState sequence = std::move(harness->open(harness->match(prompt, length), static_cast<int32_t>(length) + 1)).value();
    harness->reserve(sequence, static_cast<int32_t>(length) + 1);
    EXPECT_EQ(sequence.num_hot(), static_cast<int32_t>(length));
    EXPECT_EQ(harness.backend.copy_ops.bytes_copied - before, 144u + 64u) << length;
  }
}

TEST(PrefixCache, SequencesResumedFromOneSnapshotDoNotSeeEachOther) {
  CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
  const Tokens prompt = iota_tokens(0, 6);  // ends inside a page
  harness.serve(prompt, {}, 0);
  std::vector<SequenceState> forks;
  for (int choice = 0; choice < 3; ++choice) forks.push_back(std::move(harness->open(harness->match(prompt, 6), 20)).value());
  for (int step = 0; step < 5; ++step) {
    for (int choice = 0; choice < 3; ++choice) harness.compute(forks[static_cast<size_t>(choice)], Tokens{100 * choice + step});
  }
  for (const SequenceState& fork : forks) harness.expect_exact(fork);
  harness.expect_exact(harness->match(prompt, 6).snapshot, prompt);
}

TEST(PrefixCache, RecycledPagesAndStatesAreZero_B7) {
  CacheHarness harness(small_spec(6, 2));
  for (int round = 0; round < 20; ++round) {  // compute() checks that what it is given is zero
    SequenceState sequence = open_cold(harness, 24);
    harness.compute(sequence, iota_tokens(1000 * round, 24));
  }
  EXPECT_EQ(harness->stats().page_bytes_used + harness->stats().state_bytes_used, 0u);
}

TEST(PrefixCache, CapturesInOneBatchBelongToTheirOwnSequence_B5) {
  CacheHarness harness(small_spec(kAmplePages, kAmpleStates));
  const std::vector<size_t> lengths{1, 7, 8, 9, 19};
  std::vector<SequenceState> sequences;
  std::vector<StateSlot> slots;
  for (size_t i = 0; i < lengths.size(); ++i) {
    sequences.push_back(open_cold(harness, 64));
    slots.push_back(std::move(harness->capture_slot()).value());
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    harness.compute(sequences[i], iota_tokens(static_cast<TokenId>(1000 * i), lengths[i] + 3), static_cast<int32_t>(lengths[i]), &slots[i]);
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    const StoreResult result =
        harness->store(sequences[i], static_cast<int32_t>(lengths[i]), std::move(slots[i]), SnapshotKind::kUnstableTail);
    ASSERT_EQ(result.stored, Stored::kNew);
    harness.expect_exact(result.snapshot, iota_tokens(static_cast<TokenId>(1000 * i), lengths[i]));
  }
}

TEST(PrefixCache, EvictsTheColdBeforeTheHot_B10) {
  // Room for three entries of two pages beside the one that runs.
  CacheHarness harness(small_spec(2 * 4, 4));
  const auto prompt = [](int who) { return iota_tokens(1000 * who, 8); };
  for (const int who : {1, 2, 3}) {
    harness.serve(prompt(who), {}, 0);
    harness.now += std::chrono::seconds(10);
  }
  EXPECT_EQ(harness->open(harness->match(prompt(1), 8), 8)->num_hot(), 8);  // the oldest is the hottest now
  harness.now += std::chrono::seconds(7);
  harness.serve(prompt(4), {}, 0);
  harness.serve(prompt(5), {}, 0);
  EXPECT_EQ(harness->match(prompt(1), 8).num_hot, 8u);
  EXPECT_EQ(harness->match(prompt(2), 8).num_hot, 0u);
  EXPECT_EQ(harness->match(prompt(2), 8).reason, ColdReason::kEvicted);
  EXPECT_EQ(harness->match(prompt(3), 8).num_hot, 8u);
}

TEST(PrefixCache, EvictedSnapshotIsExplainedWithItsLengthAndAge) {
  CacheHarness harness(small_spec(40, 4));
  const Tokens prompt = iota_tokens(0, 21);
  harness.serve(prompt, {}, 0);
  harness->clear();
  harness.now += std::chrono::seconds(12);
  const Match match = harness->match(joined(prompt, Tokens{5}), 21);
  EXPECT_EQ(match.reason, ColdReason::kEvicted);
  EXPECT_EQ(match.explanation(), "snapshot of 21 tokens was evicted 12 s ago: 0 tokens usable");
  EXPECT_EQ(harness->stats().evictions[static_cast<size_t>(EvictionReason::kCleared)], 1u);
}

TEST(PrefixCache, OtherSettingsNeverMatchAndAreNamed) {
  CacheHarness harness(small_spec(40, 4));
  const Tokens prompt = iota_tokens(0, 9);
  harness.serve(prompt, {}, 0);
  const Match match = harness->match(prompt, 9, 77);
  EXPECT_FALSE(match.snapshot);
  EXPECT_EQ(match.reason, ColdReason::kDifferentSettings);
  EXPECT_EQ(match.explanation(), "different model or settings: 9 tokens are known under others");
  SequenceState sequence = std::move(harness->open(harness->match(prompt, 9, 77), 9)).value();
  EXPECT_EQ(sequence.num_hot(), 0);
  harness.compute(sequence, prompt);
  EXPECT_EQ(harness->store(std::move(sequence), SnapshotKind::kReplyEnd).stored, Stored::kNew);
  EXPECT_EQ(harness->match(prompt, 9, 77).num_hot, 9u);
  harness.check();
}

TEST(PrefixCache, PinnedSnapshotOutlivesPressure) {
  CacheHarness harness(small_spec(8, 4));
  const Tokens kept = iota_tokens(0, 8);
  harness.serve(kept, {}, 0);
  const Match pin = harness->match(kept, 8);
  for (int other = 1; other < 10; ++other) harness.serve(iota_tokens(1000 * other, 8), {}, 0);
  harness.expect_exact(pin.snapshot, kept);
  EXPECT_EQ(harness->stats().num_pinned, 1u);
  harness->clear();
  EXPECT_EQ(harness->stats().num_snapshots, 1u);
}

TEST(PrefixCache, EvictionCannotTouchWhatARunningSequenceReads_B4) {
  CacheHarness harness(small_spec(10, 4));
  const Tokens prompt = iota_tokens(0, 14);
  harness.serve(prompt, {}, 0);
  SequenceState sequence = std::move(harness->open(harness->match(prompt, 14), 20)).value();
  harness.running = {&sequence};
  harness->clear();
  for (int other = 1; other < 6; ++other) harness.serve(iota_tokens(1000 * other, 8), {}, 0);
  harness.compute(sequence, iota_tokens(50, 6));
  harness.expect_exact(sequence);
}

TEST(PrefixCache, ChildOutlivesItsParent) {
  CacheHarness harness(small_spec(40, 6));
  const Tokens prompt = iota_tokens(0, 10);
  harness.serve(prompt, {}, 0);
  const Tokens grown = joined(prompt, iota_tokens(70, 10));
  harness.serve(grown, {}, 0);
  const Match pin = harness->match(grown, 20);
  harness->clear();  // the parent goes
  EXPECT_EQ(harness->stats().num_snapshots, 1u);
  harness.expect_exact(pin.snapshot, grown);
  harness.check();
}

TEST(PrefixCache, PromisedMemoryIsNotGivenToAnyoneElse) {
  CacheHarness harness(small_spec(8, 4));
  const size_t budget = harness->stats().budget_bytes;
  SequenceState running = open_cold(harness, 32);  // all eight pages and one of four states are promised or taken
  for (int i = 0; i < 3; ++i) {
    const Result<StateSlot> slot = harness->capture_slot();
    ASSERT_TRUE(slot.ok());
  }
  std::vector<StateSlot> loose;
  while (true) {
    Result<StateSlot> slot = harness->capture_slot();
    if (!slot.ok()) break;
    loose.push_back(std::move(slot).value());
  }
  EXPECT_EQ(loose.size(), 3u);
  EXPECT_EQ(harness->open(Match{}, 4).error().code, ErrorCode::kResourceExhausted);
  harness.compute(running, iota_tokens(0, 32));  // the promise is kept
  EXPECT_EQ(harness->stats().held_bytes, budget);
  EXPECT_EQ(harness->stats().promised_bytes, 0u);
}

TEST(PrefixCache, PinThatWouldHoldPromisedMemoryIsRefused) {
  CacheHarness harness(small_spec(8, 2));
  const Tokens prompt = iota_tokens(0, 16);
  harness.serve(prompt, {}, 0);
  SequenceState running = open_cold(harness, 32);  // its promise counts on evicting that entry
  const Match match = harness->match(prompt, 15 + 1);
  EXPECT_FALSE(match.snapshot);
  EXPECT_EQ(match.reason, ColdReason::kNoRoom);
  harness.compute(running, iota_tokens(500, 32));
  harness.expect_exact(running);
}

TEST(PrefixCache, SnapshotIsTakenOverWhereACopyDoesNotFit) {
  CacheHarness harness(small_spec(8, 1));  // one state in all
  const Tokens prompt = iota_tokens(0, 10);
  harness.serve(prompt, {}, 0);
  const size_t before = harness.backend.copy_ops.bytes_copied;
  SequenceState sequence = std::move(harness->open(harness->match(prompt, 10), 32)).value();
  EXPECT_EQ(sequence.num_hot(), 10);
  EXPECT_EQ(harness.backend.copy_ops.bytes_copied, before);
  EXPECT_EQ(harness->stats().evictions[static_cast<size_t>(EvictionReason::kTaken)], 1u);
  harness.compute(sequence, iota_tokens(80, 22));
  harness.expect_exact(sequence);
}

TEST(PrefixCache, RequestLargerThanTheBudgetIsRefusedWithTheArithmetic_I4_C13) {
  CacheHarness harness(small_spec(8, 1));
  EXPECT_TRUE(harness->check_can_ever_fit(32).ok());
  const Status refused = harness->check_can_ever_fit(33);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("33 tokens"));
  EXPECT_THAT(refused.error().message, HasSubstr("9 pages"));
}

TEST(PrefixCache, StateThatDoesNotFitIsNotStored_I4) {
  CacheHarness harness(small_spec(8, 1));
  SequenceState running = open_cold(harness, 32);
  harness.compute(running, iota_tokens(0, 20));
  EXPECT_FALSE(harness->capture_slot().ok());
  EXPECT_EQ(harness->stats().num_snapshots, 0u);
  EXPECT_EQ(harness->stats().snapshots_refused, 1u);
}

TEST(PrefixCache, EvictionsAreCountedByWhomTheRoomIsFor) {
  const auto evictions = [](CacheHarness& harness, EvictionReason reason) { return harness->stats().evictions[static_cast<size_t>(reason)]; };
  {
    CacheHarness harness(small_spec(4, 2));
    harness.serve(iota_tokens(0, 8), {}, 0);
    SequenceState sequence = open_cold(harness, 16);  // all four pages
    harness.compute(sequence, iota_tokens(100, 8));
    EXPECT_EQ(evictions(harness, EvictionReason::kSequence), 0u);
    harness.compute(sequence, iota_tokens(108, 8));
    EXPECT_EQ(evictions(harness, EvictionReason::kSequence), 1u);
    EXPECT_EQ(evictions(harness, EvictionReason::kSnapshot), 0u);
  }
  {
    CacheHarness harness(small_spec(4, 2));
    harness.serve(iota_tokens(0, 8), {}, 0);
    SequenceState sequence = open_cold(harness, 8);
    harness.compute(sequence, iota_tokens(100, 8));
    EXPECT_TRUE(harness->capture_slot().ok());
    EXPECT_EQ(evictions(harness, EvictionReason::kSnapshot), 1u);
    EXPECT_EQ(evictions(harness, EvictionReason::kSequence), 0u);
  }
}

TEST(PrefixCache, BudgetBelowOneSequenceIsRefusedAtStart) {
  CopyBackend backend;
  CacheSpec spec = small_spec(1, 1);
  --spec.budget_bytes;
  const auto cache = PrefixCache::create(spec, backend);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(cache.error().message, HasSubstr("207 bytes"));
  spec = small_spec(1, 1);
  spec.kv.num_layers = 0;
  EXPECT_FALSE(PrefixCache::create(spec, backend).ok());
}

TEST(PrefixCache, PreemptedSequenceGoesOnUnchanged) {
  CacheHarness harness(small_spec(16, 4));
  const Tokens prompt = iota_tokens(0, 10);
  SequenceState sequence = open_cold(harness, 20);
  harness.compute(sequence, prompt);
  const StoreResult set_aside = harness->store(std::move(sequence), SnapshotKind::kPreempted);
  harness.serve(iota_tokens(500, 12));
  SequenceState woken = std::move(harness->open(harness->match_of(set_aside.snapshot), 20)).value();
  harness.compute(woken, iota_tokens(30, 10));
  harness.expect_exact(woken);
}

TEST(PrefixCache, SequenceWithoutTokensLeavesNothing) {
  CacheHarness harness(small_spec(16, 4));
  EXPECT_EQ(harness->store(open_cold(harness, 20), SnapshotKind::kReplyEnd).stored, Stored::kNothing);
  EXPECT_EQ(harness->stats().state_bytes_used, 0u);
  EXPECT_EQ(harness->stats().promised_bytes, 0u);
  harness.check();
}

TEST(PrefixCache, ListNamesEveryEntryWithWhatItWouldFree) {
  CacheHarness harness(small_spec(64, 8));
  const Tokens prompt = iota_tokens(0, 10);
  harness.serve(prompt, {}, 0);
  harness.now += std::chrono::seconds(30);
  harness.serve(joined(prompt, iota_tokens(50, 10)), {}, 0);
  const std::vector<SnapshotInfo> list = harness->list();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].num_tokens, 10u);
  EXPECT_EQ(list[0].hits, 1u);
  EXPECT_EQ(list[0].age_s, 30.0);
  EXPECT_EQ(list[0].idle_s, 0.0);
  EXPECT_EQ(list[0].freed_bytes, 144u + 64u);  // its partial page; the whole ones are shared
  EXPECT_EQ(list[1].num_tokens, 20u);
  EXPECT_EQ(list[0].parent, -1);
  EXPECT_EQ(list[1].parent, list[0].id);
  EXPECT_EQ(list[1].freed_bytes, 144u + 3 * 64u);
}

TEST(PrefixCacheDeathTest, TokensBeyondTheReservedPagesAreABug) {
  CacheHarness harness(small_spec(16, 4));
  SequenceState sequence = open_cold(harness, 20);
  harness->reserve(sequence, 4);
  EXPECT_DEATH(sequence.commit(iota_tokens(0, 5)), "internal error");
}

TEST(PrefixCacheDeathTest, StateFiledUnderMoreTokensThanAbsorbedIsABug_B10) {
  CacheHarness harness(small_spec(16, 4));
  SequenceState sequence = open_cold(harness, 20);
  harness.compute(sequence, iota_tokens(0, 8));
  StateSlot slot = std::move(harness->capture_slot()).value();
  EXPECT_DEATH(harness->store(sequence, 9, std::move(slot), SnapshotKind::kUnstableTail), "internal error");
}

}  // namespace
}  // namespace espalier
