// What the tests of the cache share: a backend that only copies and counts, a clock they turn, and a model whose state is a running hash
// of the tokens absorbed, so that the content of every page and state says which prefix it belongs to. For tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/prefix_cache.h"

namespace espalier {

using Tokens = std::vector<TokenId>;

inline Tokens iota_tokens(TokenId first, size_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

inline Tokens joined(std::span<const TokenId> a, std::span<const TokenId> b) {
  Tokens tokens(a.begin(), a.end());
  tokens.insert(tokens.end(), b.begin(), b.end());
  return tokens;
}

class CopyOps final : public Ops {
 public:
  void copy(const CopyArgs& args) override {
    std::memcpy(args.to, args.from, args.bytes);
    bytes_copied += args.bytes;
  }
  void embed(const EmbedArgs&) override { FAIL(); }
  void rms_norm(const RmsNormArgs&) override { FAIL(); }
  void linear(const LinearArgs&) override { FAIL(); }
  void attention_input(const AttentionInputArgs&) override { FAIL(); }
  void attention(const AttentionArgs&) override { FAIL(); }
  void causal_conv(const CausalConvArgs&) override { FAIL(); }
  void gated_delta_rule(const GatedDeltaRuleArgs&) override { FAIL(); }
  void gated_norm(const GatedNormArgs&) override { FAIL(); }
  void silu_mul(const SiluMulArgs&) override { FAIL(); }
  void gather_rows(const GatherRowsArgs&) override { FAIL(); }
  void kv_compact(const KvCompactArgs&) override { FAIL(); }

  size_t bytes_copied = 0;
};

class VectorMemory final : public BackendMemory {
 public:
  explicit VectorMemory(size_t bytes) : bytes_(bytes) {}
  std::byte* data() const override { return bytes_.data(); }
  size_t size_bytes() const override { return bytes_.size(); }
  void discard(size_t offset, size_t length) override { std::memset(bytes_.data() + offset, 0, length); }

 private:
  mutable std::vector<std::byte> bytes_;
};

class CopyBackend final : public Backend {
 public:
  std::string name() const override { return "copy"; }
  DType activation_dtype() const override { return DType::kF32; }
  DType default_kv_dtype() const override { return DType::kF32; }
  Status check(const ModelNeeds&) const override { return Ok{}; }
  Result<std::unique_ptr<BackendMemory>> reserve(size_t bytes) override {
    return std::unique_ptr<BackendMemory>(std::make_unique<VectorMemory>(bytes));
  }
  std::unique_ptr<PreparedWeight> prepare_weight(const ConstTensorView&) override { return nullptr; }
  size_t prepared_weight_bytes(int64_t, int64_t, DType) const override { return 0; }
  Ops& ops() override { return copy_ops; }
  void synchronize() override {}

  CopyOps copy_ops;
};

// A page of 4 tokens is 64 bytes (16 a token); a state is 144 bytes.
inline CacheSpec small_spec(size_t num_pages, size_t num_states) {
  CacheSpec spec;
  spec.kv = {.num_layers = 1, .num_kv_heads = 1, .head_dim = 2, .page_size = 4, .dtype = DType::kF32};
  spec.state = {.num_layers = 1,
                .num_value_heads = 1,
                .key_head_dim = 2,
                .value_head_dim = 2,
                .conv_dim = 1,
                .conv_kernel = 2,
                .hidden_size = 4,
                .activation_dtype = DType::kF32};
  spec.budget_bytes = num_pages * spec.kv.page_bytes() + num_states * spec.state.slot_bytes();
  return spec;
}

// The state after a token, given the state before: what a recurrent model does, in eight bytes.
inline uint64_t next_state(uint64_t state, TokenId token) {
  uint64_t x = (state ^ static_cast<uint32_t>(token)) + 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

class CacheHarness {
 public:
  explicit CacheHarness(const CacheSpec& spec)
      : spec_(spec), cache_(std::move(PrefixCache::create(spec, backend, [this] { return now; })).value()) {}

  PrefixCache& cache() { return *cache_; }
  PrefixCache* operator->() { return cache_.get(); }

  // Computes `tokens` on `sequence`: checks that new pages and an empty sequence's state are zero, reads the state where it lies, writes
  // keys and states. With a capture, the state after `capture_at` tokens (in all) is left in `*capture` in passing.
  void compute(SequenceState& sequence, std::span<const TokenId> tokens, int32_t capture_at = -1, const StateSlot* capture = nullptr) {
    const size_t pages_before = sequence.page_table().size();
    cache_->reserve(sequence, sequence.num_tokens() + static_cast<int32_t>(tokens.size()));
    for (size_t i = pages_before; i < sequence.page_table().size(); ++i) expect_zero(page(sequence.page_table()[i]));
    if (sequence.num_tokens() == 0) expect_zero(slot(sequence.state_slot()));
    uint64_t state = read(slot(sequence.state_slot()));
    int32_t index = sequence.num_tokens();
    for (const TokenId token : tokens) {
      state = next_state(state, token);
      fill(key(sequence.page_table(), index), state);
      ++index;
      if (capture != nullptr && index == capture_at) fill(slot(capture->index()), state);
    }
    if (!tokens.empty()) fill(slot(sequence.state_slot()), state);
    sequence.commit(tokens);
    num_computed += tokens.size();
  }

  // Every key and the state are those of the tokens it says it has absorbed, as if computed from nothing.
  void expect_exact(const SequenceState& sequence) { expect_content(sequence.tokens(), sequence.page_table(), sequence.state_slot()); }
  void expect_exact(const PinnedSnapshot& snapshot, std::span<const TokenId> tokens) {
    ASSERT_EQ(snapshot->key, token_key(tokens));
    expect_content(tokens, snapshot->pages.ids(), snapshot->slot.index());
  }

  void check(size_t num_loose_slots = 0) const {
    cache_->check_invariants(running, num_loose_slots);
    const CacheStats stats = cache_->stats();
    ASSERT_LE(stats.held_bytes, stats.budget_bytes);
    ASSERT_LE(stats.peak_bytes, stats.budget_bytes);
  }

  // One request: resumes what is hot, captures what is wanted and before the last `tail` tokens, computes the rest and the reply, keeps the
  // end.
  struct Served {
    size_t num_hot = 0;
    size_t num_computed = 0;
    ColdReason reason = ColdReason::kNewText;
    std::string explanation;
  };
  Served serve(std::span<const TokenId> prompt, std::span<const TokenId> reply = {}, size_t tail = 1) {
    Match match = cache_->match(prompt, prompt.size() - 1);
    Served served{.num_hot = match.num_hot, .num_computed = 0, .reason = match.reason, .explanation = match.explanation()};
    Result<SequenceState> opened = cache_->open(std::move(match), static_cast<int32_t>(prompt.size() + reply.size()));
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    SequenceState sequence = std::move(opened).value();
    const size_t before = num_computed;
    std::vector<std::pair<int32_t, SnapshotKind>> places;
    for (const int32_t at : cache_->wanted_captures(prompt, sequence.num_hot())) places.emplace_back(at, SnapshotKind::kDivergence);
    const auto tail_at = static_cast<int32_t>(prompt.size() - tail);
    if (tail > 0 && tail_at > sequence.num_tokens()) places.emplace_back(tail_at, SnapshotKind::kUnstableTail);
    std::sort(places.begin(), places.end());
    for (const auto& [at, kind] : places) {
      if (at <= sequence.num_tokens()) continue;
      Result<StateSlot> slot = cache_->capture_slot();
      if (!slot.ok()) continue;
      const auto begin = static_cast<size_t>(sequence.num_tokens());
      const size_t past = std::min(static_cast<size_t>(at) + 1, prompt.size());  // in passing: the sequence is already further
      compute(sequence, prompt.subspan(begin, past - begin), at, &*slot);
      cache_->store(sequence, at, std::move(slot).value(), kind);
    }
    compute(sequence, prompt.subspan(static_cast<size_t>(sequence.num_tokens())));
    compute(sequence, reply);
    expect_exact(sequence);
    served.num_computed = num_computed - before - reply.size();
    cache_->store(std::move(sequence), SnapshotKind::kReplyEnd);
    check();
    return served;
  }

  CopyBackend backend;
  std::chrono::steady_clock::time_point now{};
  size_t num_computed = 0;
  std::vector<const SequenceState*> running;  // every sequence that is open while check() is called

 private:
  std::span<std::byte> page(int32_t index) { return {cache_->kv().block(index, 0), spec_.kv.page_bytes()}; }
  std::span<std::byte> slot(int32_t index) { return {cache_->state().slot(index), spec_.state.slot_bytes()}; }
  std::span<std::byte> key(std::span<const int32_t> table, int32_t at) {
    const size_t bytes = spec_.kv.page_bytes() / static_cast<size_t>(spec_.kv.page_size);
    return page(table[static_cast<size_t>(at / spec_.kv.page_size)]).subspan(static_cast<size_t>(at % spec_.kv.page_size) * bytes, bytes);
  }
  static uint64_t read(std::span<const std::byte> bytes) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  static void fill(std::span<std::byte> bytes, uint64_t value) {
    for (size_t i = 0; i < bytes.size(); i += sizeof value) std::memcpy(bytes.data() + i, &value, sizeof value);
  }
  static void expect_all(std::span<const std::byte> bytes, uint64_t value) {
    for (size_t i = 0; i < bytes.size(); i += sizeof value) ASSERT_EQ(read(bytes.subspan(i)), value) << "byte " << i;
  }
  static void expect_zero(std::span<const std::byte> bytes) { expect_all(bytes, 0); }
  void expect_content(std::span<const TokenId> tokens, std::span<const int32_t> table, int32_t state_slot) {
    uint64_t state = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      state = next_state(state, tokens[i]);
      expect_all(key(table, static_cast<int32_t>(i)), state);
    }
    expect_all(slot(state_slot), state);
  }

  CacheSpec spec_;
  std::unique_ptr<PrefixCache> cache_;
};

}  // namespace espalier
