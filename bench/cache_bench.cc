// What the cache adds to a warm turn: finding the snapshot of a 28K-token prompt among 200, and resuming it, in the layout of a 0.8B member
// (6 attention and 18 recurrent layers, BF16). Run: cache_bench --benchmark_time_unit=us
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "backend/reference/reference_backend.h"
#include "cache/prefix_cache.h"

namespace espalier {
namespace {

constexpr size_t kPromptTokens = 28000;
constexpr int kConversations = 20;
constexpr int kTurns = 10;

CacheSpec small_member_spec(int32_t state_layers, int32_t kv_heads) {
  CacheSpec spec;
  spec.kv = {.num_layers = 6, .num_kv_heads = kv_heads, .head_dim = 256, .page_size = 64, .dtype = DType::kBf16};
  spec.state = {.num_layers = state_layers,
                .num_value_heads = 16,
                .key_head_dim = 128,
                .value_head_dim = 128,
                .conv_dim = 6144,
                .conv_kernel = 4,
                .hidden_size = 1024,
                .activation_dtype = DType::kBf16};
  spec.budget_bytes = size_t{4} << 30;
  return spec;
}

std::vector<TokenId> random_tokens(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 248320);
  return tokens;
}

// A tree of 20 conversations of 10 turns behind one system block. Pages and states are never written, so they take no memory here.
struct Filled {
  std::unique_ptr<Backend> backend = make_reference_backend();
  std::unique_ptr<PrefixCache> cache;
  std::vector<TokenId> prompt;  // the first conversation's next prompt

  Filled() {
    CacheSpec spec = small_member_spec(1, 1);
    spec.budget_bytes = size_t{64} << 30;
    cache = std::move(PrefixCache::create(spec, *backend)).value();
    const std::vector<TokenId> system = random_tokens(1, 6000);
    for (int conversation = 0; conversation < kConversations; ++conversation) {
      std::vector<TokenId> tokens = system;
      for (int turn = 0; turn < kTurns; ++turn) {
        const std::vector<TokenId> more =
            random_tokens(static_cast<uint32_t>(100 * conversation + turn + 2), (kPromptTokens - 6000) / kTurns);
        tokens.insert(tokens.end(), more.begin(), more.end());
        const auto size = static_cast<int32_t>(tokens.size());
        SequenceState sequence = std::move(cache->open(cache->match(tokens, tokens.size() - 1), size)).value();
        const auto hot = static_cast<size_t>(sequence.num_hot());
        cache->reserve(sequence, size);
        sequence.commit(std::span(tokens).subspan(hot));
        cache->store(std::move(sequence), SnapshotKind::kPromptEnd);
      }
      if (conversation == 0) prompt = tokens;
    }
    const std::vector<TokenId> more = random_tokens(99999, 300);
    prompt.insert(prompt.end(), more.begin(), more.end());
  }
};

void match(benchmark::State& state) {
  static const Filled filled;
  size_t hot = 0;
  for (auto _ : state) {
    const Match found = filled.cache->match(filled.prompt, filled.prompt.size() - 1);
    hot = found.num_hot;
  }
  state.counters["hot"] = static_cast<double>(hot);
  state.counters["snapshots"] = static_cast<double>(filled.cache->stats().num_snapshots);
}
BENCHMARK(match)->Unit(benchmark::kMicrosecond);

// Copying 18.6 MiB of state is nearly all of it; the memcpy of as many bytes stands beside it.
void restore(benchmark::State& state) {
  const std::unique_ptr<Backend> backend = make_reference_backend();
  const auto cache = std::move(PrefixCache::create(small_member_spec(18, 2), *backend)).value();
  const auto length = static_cast<size_t>(state.range(0));
  const std::vector<TokenId> tokens = random_tokens(1, length);
  {
    SequenceState sequence = std::move(cache->open(Match{}, static_cast<int32_t>(length))).value();
    cache->reserve(sequence, static_cast<int32_t>(length));
    std::memset(cache->state().slot(sequence.state_slot()), 1, cache->stats().bytes_per_state);
    sequence.commit(tokens);
    cache->store(std::move(sequence), SnapshotKind::kPromptEnd);
  }
  for (auto _ : state) {
    Match found = cache->match(tokens, length);
    benchmark::DoNotOptimize(cache->open(std::move(found), static_cast<int32_t>(length) + 512));
  }
  state.counters["state_MiB"] = static_cast<double>(cache->stats().bytes_per_state) / 1048576.0;
}
BENCHMARK(restore)->Arg(1000)->Arg(28000)->Unit(benchmark::kMicrosecond);

void copy_one_state(benchmark::State& state) {
  const size_t bytes = small_member_spec(18, 2).state.slot_bytes();
  std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes, std::byte{2});
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(copy_one_state)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace espalier
