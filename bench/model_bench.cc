// Whole passes of a checkpoint: decoding one token at a depth of history, and prefilling a prompt, as shares of the machine's limits.
// ESPALIER_BENCH_MODEL names the checkpoint (tools/make_random_checkpoint.py makes one of any shape); models/espalier-nano otherwise.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <numeric>

#include "backend/cpu/cpu_backend.h"
#include "bench/machine_limits.h"
#include "checkpoint/checkpoint.h"
#include "model/causal_lm.h"

namespace espalier::bench {
namespace {

constexpr int32_t kPageSize = 64;
constexpr int32_t kMaxTokens = 20480;
constexpr int32_t kMaxRows = 512;

// One model with one sequence, kept for the whole program.
class Bench {
 public:
  static Bench& instance() {
    static Bench bench;
    return bench;
  }

  // Brings the sequence to `depth` tokens, cheaply: zero keys and states are as dear to read as any.
  void set_depth(int32_t depth) { depth_ = depth; }
  void pass(int32_t rows, bool output) {
    batch_.clear();
    const int32_t last = rows - 1;
    batch_.add({.tokens = std::span(tokens_).first(static_cast<size_t>(rows)),
                .base = depth_,
                .state_slot = 0,
                .page_table = pages_,
                .keep = Keep::kAll,
                .output_rows = output ? std::span(&last, 1) : std::span<const int32_t>()});
    benchmark::DoNotOptimize(model_->forward(batch_, {kv_->data(), kv_layout_}, {state_->data(), model_->state_layout()}).data);
  }
  void advance(int32_t rows) { depth_ += rows; }

  // Bytes a decoded token at `depth` must move: weights, keys and values, states read and written.
  double decode_bytes(int32_t depth) const {
    const double kv = static_cast<double>(kv_layout_.page_bytes()) / kPageSize * depth;
    return static_cast<double>(model_->bytes_per_token()) + kv + 2.0 * static_cast<double>(model_->state_layout().slot_bytes());
  }
  // Operations of the linears of one prompt row (two a weight), the head left out.
  double row_flops() const {
    const ModelConfig& config = model_->config();
    const double head = 2.0 * config.vocab_rows * config.hidden_size;
    return static_cast<double>(model_->bytes_per_token()) - head;  // BF16: two bytes a weight, two operations a weight
  }
  double bandwidth() { return read_bandwidth(pool_); }
  double peak() { return dot_peak(pool_, table_); }

 private:
  Bench() : pool_(2) {
    const char* path = std::getenv("ESPALIER_BENCH_MODEL");
    const Checkpoint checkpoint = Checkpoint::open(path != nullptr ? path : "models/espalier-nano").value();
    backend_ = make_cpu_backend({.threads = 2, .isa = {}}).value();
    const std::string name = backend_->name();
    table_ = name.substr(name.find('(') + 1, name.find(')') - name.find('(') - 1);
    model_ = CausalLm::load(checkpoint, *backend_, {.max_rows = kMaxRows, .max_outputs = 1, .max_uncommitted_rows = 0}).value();
    kv_layout_ = model_->kv_layout(backend_->default_kv_dtype(), kPageSize);
    pages_.resize(kMaxTokens / kPageSize);
    std::iota(pages_.begin(), pages_.end(), 0);
    kv_ = backend_->reserve(pages_.size() * kv_layout_.page_bytes()).value();
    state_ = backend_->reserve(model_->state_layout().slot_bytes()).value();
    tokens_.resize(kMaxRows);
    for (size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<TokenId>(i * 7 % 1000);
  }

  ThreadPool pool_;
  std::string table_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<CausalLm> model_;
  KvLayout kv_layout_;
  std::unique_ptr<BackendMemory> kv_, state_;
  std::vector<int32_t> pages_;
  std::vector<TokenId> tokens_;
  ForwardBatch batch_;
  int32_t depth_ = 0;
};

void BM_Decode(benchmark::State& state) {
  Bench& bench = Bench::instance();
  const auto depth = static_cast<int32_t>(state.range(0));
  const double bandwidth = bench.bandwidth();
  bench.set_depth(depth);
  bench.pass(1, true);
  for (auto _ : state) bench.pass(1, true);
  const double rate = static_cast<double>(state.iterations());
  state.counters["tok/s"] = benchmark::Counter(rate, benchmark::Counter::kIsRate);
  state.counters["of_bandwidth"] = benchmark::Counter(rate * bench.decode_bytes(depth) / bandwidth, benchmark::Counter::kIsRate);
  state.counters["GB/s_limit"] = bandwidth / 1e9;
}
BENCHMARK(BM_Decode)->Arg(0)->Arg(4096)->Arg(16384)->Unit(benchmark::kMillisecond)->MinTime(2.0)->UseRealTime();

void BM_Prefill(benchmark::State& state) {
  Bench& bench = Bench::instance();
  const auto tokens = static_cast<int32_t>(state.range(0));
  const double peak = bench.peak();
  for (auto _ : state) {
    bench.set_depth(0);
    for (int32_t done = 0; done < tokens;) {
      const int32_t rows = std::min(kMaxRows, tokens - done);
      bench.pass(rows, done + rows == tokens);
      bench.advance(rows);
      done += rows;
    }
  }
  const double rows = static_cast<double>(state.iterations()) * tokens;
  state.counters["tok/s"] = benchmark::Counter(rows, benchmark::Counter::kIsRate);
  state.counters["of_peak"] = benchmark::Counter(rows * bench.row_flops() / peak, benchmark::Counter::kIsRate);
  state.counters["GFLOP/s_limit"] = peak / 1e9;
}
BENCHMARK(BM_Prefill)->Arg(128)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace espalier::bench
