// Each op on each kernel table of this machine, at the shapes of Qwen3.5-0.8B, with the share of the bound that limits it: `of_limit` is
// bytes over the read bandwidth, or operations over the register-only dot peak, both measured beside it. Small ops find their data in
// a cache and may exceed 1.
//   ops_bench [--benchmark_filter=linear/avx512] ; ESPALIER_BENCH_THREADS=n (default: physical cores)
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "base/cpu_features.h"
#include "base/format.h"
#include "bench/machine_limits.h"
#include "tensor/codec.h"

namespace espalier::bench {
namespace {

constexpr int32_t kHidden = 1024, kHeads = 8, kKvHeads = 2, kHeadDim = 256, kDeltaHeads = 16, kDeltaDim = 128, kConvDim = 6144;
// Decode meets its weights and states cold: what a benchmark cycles through must be far larger than any cache.
constexpr size_t kColdBytes = size_t{384} << 20;

int num_threads() {
  const char* value = std::getenv("ESPALIER_BENCH_THREADS");
  return value != nullptr && std::atoi(value) > 0 ? std::atoi(value) : physical_cores();
}

ThreadPool& limit_pool() {
  static ThreadPool pool(num_threads());
  return pool;
}
// The limits wander with the clock and with what else runs, so they are measured again beside every benchmark; the best counts.
double bandwidth() {
  static double best = 0.0;
  return best = std::max(best, read_bandwidth(limit_pool()));
}
double peak(const std::string& table) {
  static std::map<std::string, double> best;
  return best[table] = std::max(best[table], dot_peak(limit_pool(), table));
}

// Values around 0 with many bit patterns: a denormal or a zero could be faster or slower.
Tensor noise(DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  uint32_t state = 12345;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = (static_cast<float>(state >> 8) * 0x1p-23f - 1.0f) * 0.5f;
    if (dtype == DType::kBf16) {
      tensor.as<uint16_t>()[i] = f32_to_bf16(value);
    } else {
      tensor.as<float>()[i] = value;
    }
  }
  return tensor;
}

// One sequence of `rows` rows on top of `history` committed tokens; page i of the sequence is page i of the pool.
struct Chain {
  Chain(int32_t rows, int32_t history) {
    for (int32_t i = 0; i < rows; ++i) {
      parent.push_back(i - 1);
      index.push_back(history + i);
    }
    for (int stream = 0; stream < 3; ++stream) rotary.insert(rotary.end(), index.begin(), index.end());
    sequence_of.assign(static_cast<size_t>(rows), 0);
    for (int32_t p = 0; p <= (history + rows) / 64; ++p) pages.push_back(p);
    sequence = {.row_begin = 0, .num_rows = rows, .base = history, .state_slot = 0, .page_begin = 0, .keep = Keep::kAll};
    view.num_rows = rows;
    view.num_sequences = 1;
    view.token = sequence_of.data();
    view.parent = parent.data();
    view.index = view.kv_slot = index.data();
    view.rotary_position = rotary.data();
    view.row_sequence = sequence_of.data();
    view.page_table = pages.data();
    view.sequences = &sequence;
  }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  std::vector<int32_t> parent, index, rotary, sequence_of, pages;
  SequenceView sequence;
  BatchView view;
};

struct Work {
  double bytes = 0;  // moved to or from memory
  double flops = 0;  // by the product instruction
};

// Times `step` and reports its fastest run (other programs only ever add time) against the bound that `work` meets first.
void measure(benchmark::State& state, const std::string& table, const Work& work, const std::function<void()>& step) {
  using Clock = std::chrono::steady_clock;
  step();  // scratch grows, pages are touched
  double best = 1e30;
  for (auto _ : state) {
    const Clock::time_point start = Clock::now();
    step();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  const double memory_seconds = work.bytes / bandwidth(), dot_seconds = work.flops > 0 ? work.flops / peak(table) : 0.0;
  state.counters["best_us"] = best * 1e6;
  if (dot_seconds > memory_seconds) {
    state.counters["GFLOP/s"] = work.flops * 1e-9 / best;
  } else {
    state.counters["GB/s"] = work.bytes * 1e-9 / best;
  }
  state.counters["of_limit"] = std::max(dot_seconds, memory_seconds) / best;
}

std::unique_ptr<Backend> make_backend(const std::string& table) {
  return make_cpu_backend({.threads = num_threads(), .isa = table}).value();
}

void BM_Linear(benchmark::State& state, const std::string& table, int64_t n, int64_t k, int64_t rows) {
  const auto backend = make_backend(table);
  std::vector<std::unique_ptr<PreparedWeight>> weights;
  {
    const Tensor source = noise(DType::kBf16, {n, k});
    const size_t one = backend->prepared_weight_bytes(n, k, DType::kBf16);
    for (size_t bytes = 0; bytes < (rows <= 32 ? kColdBytes : one); bytes += one) weights.push_back(backend->prepare_weight(source.view()));
  }
  const Tensor x = noise(DType::kBf16, {rows, k});
  Tensor y(DType::kF32, {rows, n});
  size_t next = 0;
  const auto one = static_cast<double>(weights.front()->size_bytes());
  measure(state, table, {.bytes = one, .flops = 2.0 * static_cast<double>(rows * n * k)}, [&] {
    backend->ops().linear({.x = x.view(), .w = weights[next].get(), .y = y.view()});
    next = (next + 1) % weights.size();
  });
}

void BM_Attention(benchmark::State& state, const std::string& table, int32_t rows, int32_t history) {
  const auto backend = make_backend(table);
  const Chain chain(rows, history);
  // Several layers, so that a decode step never finds its keys in a cache.
  KvLayout layout{.num_layers = rows == 1 ? 12 : 1, .num_kv_heads = kKvHeads, .head_dim = kHeadDim, .page_size = 64, .dtype = DType::kBf16};
  Tensor pool = noise(DType::kBf16, {static_cast<int64_t>(chain.pages.size() * layout.page_bytes() / 2)});
  const Tensor q = noise(DType::kBf16, {rows, kHeads, kHeadDim}), gate = noise(DType::kF32, {rows, kHeads, 2, kHeadDim});
  Tensor y(DType::kBf16, {rows, kHeads * kHeadDim});
  int32_t layer = 0;
  double pairs = 0;  // of a query head with a key
  for (int32_t i = 0; i < rows; ++i) pairs += static_cast<double>(kHeads) * (history + i + 1);
  measure(state, table, {.bytes = 2.0 * 2 * kKvHeads * kHeadDim * (history + rows), .flops = 4.0 * kHeadDim * pairs}, [&] {
    backend->ops().attention({.batch = &chain.view,
                              .q = q.view(),
                              .q_gate = gate.view(),
                              .kv = {reinterpret_cast<std::byte*>(pool.as<uint16_t>()), layout},
                              .layer = layer,
                              .scale = 0.0625f,
                              .y = y.view()});
    layer = (layer + 1) % layout.num_layers;
  });
}

void BM_AttentionInput(benchmark::State& state, const std::string& table, int32_t rows) {
  const auto backend = make_backend(table);
  const Chain chain(rows, 1000);
  const KvLayout layout{.num_layers = 1, .num_kv_heads = kKvHeads, .head_dim = kHeadDim, .page_size = 64, .dtype = DType::kBf16};
  Tensor pool = noise(DType::kBf16, {static_cast<int64_t>(chain.pages.size() * layout.page_bytes() / 2)});
  const Tensor q_gate = noise(DType::kF32, {rows, kHeads, 2, kHeadDim}), k = noise(DType::kF32, {rows, kKvHeads, kHeadDim}),
               norm = noise(DType::kF32, {kHeadDim});
  Tensor q(DType::kBf16, {rows, kHeads, kHeadDim});
  measure(state, table, {.bytes = rows * kHeadDim * (kHeads * (4.0 + 2.0) + 2 * kKvHeads * (4.0 + 2.0))}, [&] {
    backend->ops().attention_input({.batch = &chain.view,
                                    .q_gate = q_gate.view(),
                                    .k = k.view(),
                                    .v = k.view(),
                                    .q_norm = norm.as<float>(),
                                    .k_norm = norm.as<float>(),
                                    .eps = 1e-6f,
                                    .rotary = {},
                                    .kv = {reinterpret_cast<std::byte*>(pool.as<uint16_t>()), layout},
                                    .layer = 0,
                                    .q = q.view()});
  });
}

StateLayout state_layout(int32_t layers) {
  return {.num_layers = layers,
          .num_value_heads = kDeltaHeads,
          .key_head_dim = kDeltaDim,
          .value_head_dim = kDeltaDim,
          .conv_dim = kConvDim,
          .conv_kernel = 4,
          .hidden_size = kHidden,
          .activation_dtype = DType::kBf16};
}

void BM_GatedDeltaRule(benchmark::State& state, const std::string& table, int32_t rows) {
  const auto backend = make_backend(table);
  const Chain chain(rows, 0);
  const StateLayout layout = state_layout(rows == 1 ? static_cast<int32_t>(kColdBytes >> 20) : 1);
  Tensor pool = noise(DType::kF32, {static_cast<int64_t>(layout.slot_bytes() / sizeof(float))});
  const Tensor qkv = noise(DType::kF32, {rows, kConvDim}), gates = noise(DType::kF32, {rows, kDeltaHeads});
  Tensor o(DType::kF32, {rows, kDeltaHeads * kDeltaDim});
  int32_t layer = 0;
  // Three products over the state for each row, on FP32 lanes: compared with the dot peak they show what the recurrence costs a prefill.
  const double products = rows > 1 ? 3.0 * 2 * kDeltaHeads * kDeltaDim * kDeltaDim * rows : 0.0;
  measure(state, table, {.bytes = 2.0 * static_cast<double>(layout.recurrent_bytes()), .flops = products}, [&] {
    backend->ops().gated_delta_rule({.batch = &chain.view,
                                     .qkv = qkv.view(),
                                     .a = gates.view(),
                                     .b = gates.view(),
                                     .a_log = gates.as<float>(),
                                     .dt_bias = gates.as<float>(),
                                     .num_key_heads = kDeltaHeads,
                                     .state = {reinterpret_cast<std::byte*>(pool.as<float>()), layout},
                                     .layer = layer,
                                     .o = o.view()});
    layer = (layer + 1) % layout.num_layers;
  });
}

void BM_CausalConv(benchmark::State& state, const std::string& table, int32_t rows) {
  const auto backend = make_backend(table);
  const Chain chain(rows, 0);
  const StateLayout layout = state_layout(1);
  Tensor pool(DType::kU8, {static_cast<int64_t>(layout.slot_bytes())});
  const Tensor u = noise(DType::kF32, {rows, kConvDim}), weight = noise(DType::kF32, {kConvDim, 4});
  Tensor y(DType::kF32, {rows, kConvDim});
  measure(state, table, {.bytes = 8.0 * rows * kConvDim}, [&] {
    backend->ops().causal_conv({.batch = &chain.view,
                                .u = u.view(),
                                .weight = weight.as<float>(),
                                .state = {reinterpret_cast<std::byte*>(pool.as<uint8_t>()), layout},
                                .layer = 0,
                                .y = y.view()});
  });
}

void BM_RmsNorm(benchmark::State& state, const std::string& table, int64_t rows) {
  const auto backend = make_backend(table);
  const Tensor x = noise(DType::kF32, {rows, kHidden});
  Tensor y(DType::kBf16, {rows, kHidden});
  measure(state, table, {.bytes = 6.0 * static_cast<double>(rows) * kHidden},
          [&] { backend->ops().rms_norm({.x = x.view(), .weight = x.as<float>(), .eps = 1e-6f, .y = y.view()}); });
}

void BM_GatedNorm(benchmark::State& state, const std::string& table, int64_t rows) {
  const auto backend = make_backend(table);
  const Tensor o = noise(DType::kF32, {rows, kDeltaHeads, kDeltaDim});
  Tensor y(DType::kBf16, {rows, kDeltaHeads, kDeltaDim});
  measure(state, table, {.bytes = 10.0 * static_cast<double>(rows) * kDeltaHeads * kDeltaDim},
          [&] { backend->ops().gated_norm({.o = o.view(), .z = o.view(), .weight = o.as<float>(), .eps = 1e-6f, .y = y.view()}); });
}

void BM_SiluMul(benchmark::State& state, const std::string& table, int64_t rows) {
  const auto backend = make_backend(table);
  const Tensor gate = noise(DType::kF32, {rows, 3584}), up = noise(DType::kF32, {rows, 3584});
  Tensor y(DType::kBf16, {rows, 3584});
  measure(state, table, {.bytes = 10.0 * static_cast<double>(rows) * 3584},
          [&] { backend->ops().silu_mul({.gate = gate.view(), .up = up.view(), .y = y.view()}); });
}

void BM_Embed(benchmark::State& state, const std::string& table, int32_t rows) {
  const auto backend = make_backend(table);
  const Chain chain(rows, 0);
  const Tensor embedding = noise(DType::kBf16, {1, kHidden});
  Tensor y(DType::kF32, {rows, kHidden});
  measure(state, table, {.bytes = 6.0 * rows * kHidden},
          [&] { backend->ops().embed({.batch = &chain.view, .table = embedding.view(), .y = y.view()}); });
}

void BM_GatherRows(benchmark::State& state, const std::string& table, int32_t rows) {
  const auto backend = make_backend(table);
  const Chain chain(rows, 0);
  const Tensor x = noise(DType::kF32, {rows, kHidden});
  Tensor y(DType::kF32, {rows, kHidden});
  measure(state, table, {.bytes = 8.0 * rows * kHidden},
          [&] { backend->ops().gather_rows({.x = x.view(), .rows = chain.index.data(), .num_rows = rows, .y = y.view()}); });
}

void BM_Copy(benchmark::State& state, const std::string& table, size_t bytes) {
  const auto backend = make_backend(table);
  const Tensor from(DType::kU8, {static_cast<int64_t>(bytes)});
  Tensor to(DType::kU8, {static_cast<int64_t>(bytes)});
  measure(state, table, {.bytes = 2.0 * static_cast<double>(bytes)}, [&] {
    backend->ops().copy({.from = reinterpret_cast<const std::byte*>(from.as<uint8_t>()),
                         .to = reinterpret_cast<std::byte*>(to.as<uint8_t>()),
                         .bytes = bytes});
  });
}

// Four accepted nodes of a tree of sixteen, all six layers.
void BM_KvCompact(benchmark::State& state, const std::string& table) {
  const auto backend = make_backend(table);
  const KvLayout layout{.num_layers = 6, .num_kv_heads = kKvHeads, .head_dim = kHeadDim, .page_size = 64, .dtype = DType::kBf16};
  Tensor pool = noise(DType::kBf16, {static_cast<int64_t>(layout.page_bytes() / 2)});
  const int32_t page = 0, from[] = {11, 14, 19, 25}, to[] = {10, 11, 12, 13};
  measure(state, table, {.bytes = 2.0 * 4 * static_cast<double>(layout.page_bytes()) / 64}, [&] {
    backend->ops().kv_compact(
        {.kv = {reinterpret_cast<std::byte*>(pool.as<uint16_t>()), layout}, .page_table = &page, .from = from, .to = to, .count = 4});
  });
}

template <typename... Args>
void add(const std::string& op, const std::string& table, const std::string& shape,
         void (*fn)(benchmark::State&, const std::string&, Args...), Args... args) {
  benchmark::RegisterBenchmark((op + "/" + table + "/" + shape).c_str(), [=](benchmark::State& state) { fn(state, table, args...); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

void register_all(const std::string& table) {
  struct Matrix {
    int64_t n, k;
  };
  for (const Matrix& m :
       {Matrix{16, 1024}, {512, 1024}, {1024, 1024}, {1024, 2048}, {1024, 3584}, {3584, 1024}, {6144, 1024}, {248320, 1024}}) {
    add("linear", table, format("{}x{}/rows:1", m.n, m.k), BM_Linear, m.n, m.k, int64_t{1});
  }
  for (const int64_t rows : {2, 4, 8, 16})
    add("linear", table, format("6144x1024/rows:{}", rows), BM_Linear, int64_t{6144}, int64_t{1024}, rows);
  for (const Matrix& m : {Matrix{1024, 1024}, {1024, 3584}, {3584, 1024}, {6144, 1024}}) {
    add("linear", table, format("{}x{}/rows:512", m.n, m.k), BM_Linear, m.n, m.k, int64_t{512});
  }
  add("linear", table, "6144x1024/rows:2048", BM_Linear, int64_t{6144}, int64_t{1024}, int64_t{2048});
  add("attention", table, "rows:1/history:16384", BM_Attention, 1, 16384);
  add("attention", table, "rows:256/history:16384", BM_Attention, 256, 16384);
  add("attention", table, "rows:512/history:0", BM_Attention, 512, 0);
  for (const int32_t rows : {1, 512}) {
    const std::string shape = format("rows:{}", rows);
    add("attention_input", table, shape, BM_AttentionInput, rows);
    add("gated_delta_rule", table, shape, BM_GatedDeltaRule, rows);
    add("causal_conv", table, shape, BM_CausalConv, rows);
    add("rms_norm", table, shape, BM_RmsNorm, int64_t{rows});
    add("gated_norm", table, shape, BM_GatedNorm, int64_t{rows});
    add("silu_mul", table, shape, BM_SiluMul, int64_t{rows});
    add("embed", table, shape, BM_Embed, rows);
    add("gather_rows", table, shape, BM_GatherRows, rows);
  }
  add("copy", table, "19MB", BM_Copy, size_t{19} << 20);
  add("kv_compact", table, "4 of 16", BM_KvCompact);
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;         // NOLINT(google-build-using-namespace)
  using namespace espalier::bench;  // NOLINT(google-build-using-namespace)
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("processor", cpu_features().processor);
  benchmark::AddCustomContext("threads", std::to_string(num_threads()));
  benchmark::AddCustomContext("read bandwidth", format("{:.1f} GB/s", bandwidth() * 1e-9));
  for (const cpu::KernelTable* table : cpu::available_tables()) {
    benchmark::AddCustomContext(std::string("dot peak ") + table->name, format("{:.0f} GFLOP/s", peak(table->name) * 1e-9));
    register_all(table->name);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
