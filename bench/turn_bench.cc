// What a warm turn at 20,000 tokens of history costs before its new tokens are computed, part by part: rendering the prompt with its
// branch points, its ids from known segments, finding the snapshot and resuming it (states of the 0.8B shape).
#include <benchmark/benchmark.h>

#include <memory>

#include "backend/cpu/cpu_backend.h"
#include "bench/agent_conversation.h"
#include "cache/prefix_cache.h"
#include "chat/messages.h"
#include "chat/prompt.h"
#include "engine/prompt_encoder.h"

namespace espalier::bench {
namespace {

constexpr size_t kHistoryTokens = 20000;
const char* const kModel = "models/espalier-nano";

struct Turn {
  Turn() : tokenizer(Tokenizer::load(kModel).value()), chat_template(ChatTemplate::load(kModel).value()), encoder(tokenizer, size_t{64} << 20) {
    const Json tools = agent_tools();
    size_t turns = 1;
    do {
      before = normalise_messages(agent_conversation(turns), tools).value();
      before_text = chat_template->render_with_branch_points(before, {}).value();
      before_ids = encoder.encode(before_text.text, before_text.branch_points, ReplyIds::kAdopt).ids;
      turns += 1;
    } while (before_ids.size() < kHistoryTokens);
    now = normalise_messages(agent_conversation(turns), tools).value();
    now_text = chat_template->render_with_branch_points(now, {}).value();
    now_ids = tokenizer->encode(now_text.text);
  }
  static Turn& instance() {
    static Turn turn;
    return turn;
  }

  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;
  PromptEncoder encoder;
  ChatInput before, now;
  RenderedPrompt before_text, now_text;
  std::vector<TokenId> before_ids, now_ids;
};

void BM_TurnRender(benchmark::State& state) {
  Turn& turn = Turn::instance();
  for (auto _ : state) benchmark::DoNotOptimize(turn.chat_template->render_with_branch_points(turn.now, {}));
  state.counters["tokens"] = static_cast<double>(turn.now_ids.size());
}
BENCHMARK(BM_TurnRender)->Unit(benchmark::kMillisecond);

// The history is known; the new turn is tokenised each time, in an encoder that has not seen it.
void BM_TurnEncode(benchmark::State& state) {
  Turn& turn = Turn::instance();
  for (auto _ : state) {
    state.PauseTiming();
    auto encoder = std::make_unique<PromptEncoder>(turn.tokenizer, size_t{64} << 20);
    encoder->encode(turn.before_text.text, turn.before_text.branch_points, ReplyIds::kAdopt);
    state.ResumeTiming();
    benchmark::DoNotOptimize(encoder->encode(turn.now_text.text, turn.now_text.branch_points, ReplyIds::kAdopt));
    state.PauseTiming();
    encoder.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_TurnEncode)->Unit(benchmark::kMillisecond);

// The 0.8B shape: 6 attention layers of 2 x 256, 18 recurrent layers of 16 x 128 x 128.
struct Cache {
  Cache() : backend(make_cpu_backend({.threads = 2, .isa = {}}).value()) {
    const CacheSpec spec{
        .kv = {.num_layers = 6, .num_kv_heads = 2, .head_dim = 256, .page_size = 64, .dtype = DType::kBf16},
        .state = {.num_layers = 18, .num_value_heads = 16, .key_head_dim = 128, .value_head_dim = 128, .conv_dim = 6144, .conv_kernel = 4,
                  .hidden_size = 1024, .activation_dtype = DType::kBf16},
        .budget_bytes = size_t{2} << 30};
    cache = PrefixCache::create(spec, *backend).value();
    Turn& turn = Turn::instance();
    const auto known = static_cast<int32_t>(turn.before_ids.size() - 3);  // up to the part of the slot that changes
    SequenceState sequence = cache->open(cache->match(turn.before_ids, 0), known).value();
    cache->reserve(sequence, known);
    sequence.commit(std::span(turn.before_ids).first(static_cast<size_t>(known)));
    cache->store(std::move(sequence), SnapshotKind::kUnstableTail);
  }
  std::unique_ptr<Backend> backend;
  std::unique_ptr<PrefixCache> cache;
};

void BM_TurnMatchAndRestore(benchmark::State& state) {
  static Cache cache;
  Turn& turn = Turn::instance();
  size_t hot = 0;
  for (auto _ : state) {
    Match match = cache.cache->match(turn.now_ids, turn.now_ids.size() - 1);
    hot = match.num_hot;
    benchmark::DoNotOptimize(cache.cache->open(std::move(match), static_cast<int32_t>(turn.now_ids.size() + 64)).value().state_slot());
  }
  state.counters["hot"] = static_cast<double>(hot);
}
BENCHMARK(BM_TurnMatchAndRestore)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace espalier::bench
