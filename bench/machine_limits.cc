#include "bench/machine_limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "base/aligned_buffer.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace espalier::bench {
namespace {

constexpr int kRepeats = 5;
constexpr int64_t kRounds = 20'000;  // of one chunk of register work: around 200 microseconds
constexpr int kChains = 12;          // independent accumulators: latency times throughput of every known core

template <typename Fn>
double best_seconds(const Fn& fn) {
  double best = 1e30;
  for (int i = 0; i < kRepeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    fn();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// Keeps a result alive without storing it.
template <typename T>
void keep(const T& value) {
  __asm__ __volatile__("" : : "m"(value) : "memory");
}

#if defined(__x86_64__)

[[gnu::target("avx2")]] void read_streams(const std::byte* const* streams, size_t bytes) {
  __m256i sum = _mm256_setzero_si256();
  for (size_t offset = 0; offset < bytes; offset += 64) {
    for (int s = 0; s < 4; ++s) {
      const auto* line = reinterpret_cast<const __m256i*>(streams[s] + offset);
      sum = _mm256_xor_si256(sum, _mm256_xor_si256(_mm256_load_si256(line), _mm256_load_si256(line + 1)));
    }
  }
  keep(sum);
}

// The chains live in registers only if the loop over them is unrolled: written out by pragma.
[[gnu::target("avx2,fma")]] double fma_chunk() {
  __m256 acc[kChains];
  for (__m256& a : acc) a = _mm256_setzero_ps();
  const __m256 x = _mm256_set1_ps(0.5f);
  for (int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) acc[c] = _mm256_fmadd_ps(x, x, acc[c]);
  }
  for (const __m256& a : acc) keep(a);
  return 2.0 * 8 * kChains * kRounds;
}

[[gnu::target("avx512f")]] double wide_fma_chunk() {
  __m512 acc[kChains];
  for (__m512& a : acc) a = _mm512_setzero_ps();
  const __m512 x = _mm512_set1_ps(0.5f);
  for (int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) acc[c] = _mm512_fmadd_ps(x, x, acc[c]);
  }
  for (const __m512& a : acc) keep(a);
  return 2.0 * 16 * kChains * kRounds;
}

[[gnu::target("avx512f,avx512bf16")]] double dot_chunk() {
  __m512 acc[kChains];
  for (__m512& a : acc) a = _mm512_setzero_ps();
  const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3F003F00));  // pairs of 0.5
  for (int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) acc[c] = _mm512_dpbf16_ps(acc[c], x, x);
  }
  for (const __m512& a : acc) keep(a);
  return 2.0 * 32 * kChains * kRounds;
}

// Four accumulator tiles, as the kernel has.
[[gnu::target("amx-tile,amx-bf16")]] double tile_chunk() {
  alignas(64) uint8_t config[64] = {1};
  for (int t = 0; t < 8; ++t) {
    config[16 + 2 * t] = 64;
    config[48 + t] = 16;
  }
  __asm__ __volatile__("" : : "r"(config) : "memory");  // GCC 12 takes ldtilecfg to read 8 bytes
  _tile_loadconfig(config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t i = 0; i < kRounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return 2.0 * 4 * 16 * 16 * 32 * kRounds;
}

double register_chunk(std::string_view table) {
  if (table == "amx") return tile_chunk();
  if (table == "avx512") return dot_chunk();
  return table == "amx-twin" ? wide_fma_chunk() : fma_chunk();
}

#elif defined(__aarch64__)

void read_streams(const std::byte* const* streams, size_t bytes) {
  uint8x16_t sum = vdupq_n_u8(0);
  for (size_t offset = 0; offset < bytes; offset += 16) {
    for (int s = 0; s < 4; ++s) sum = veorq_u8(sum, vld1q_u8(reinterpret_cast<const uint8_t*>(streams[s] + offset)));
  }
  keep(sum);
}

double register_chunk(std::string_view) {
  float32x4_t acc[kChains];
  for (float32x4_t& a : acc) a = vdupq_n_f32(0.0f);
  const float32x4_t x = vdupq_n_f32(0.5f);
  for (int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) acc[c] = vfmaq_f32(acc[c], x, x);
  }
  for (const float32x4_t& a : acc) keep(a);
  return 2.0 * 4 * kChains * kRounds;
}

#endif

}  // namespace

double read_bandwidth(ThreadPool& pool) {
  constexpr size_t kBytes = size_t{1} << 30, kPiece = size_t{256} << 10;
  const AlignedBuffer buffer(kBytes);
  const auto* data = static_cast<const std::byte*>(buffer.data());
  std::memset(buffer.data(), 1, kBytes);
  const double seconds = best_seconds([&] {
    pool.parallel_for(static_cast<int64_t>(kBytes / (4 * kPiece)), [&](int64_t chunk, int) {
      // Side by side, as the panels of a weight lie: streams 256 MiB apart read a third slower here.
      const std::byte* streams[4];
      for (size_t s = 0; s < 4; ++s) streams[s] = data + (static_cast<size_t>(chunk) * 4 + s) * kPiece;
      read_streams(streams, kPiece);
    });
  });
  return static_cast<double>(kBytes) / seconds;
}

double dot_peak(ThreadPool& pool, std::string_view table) {
  const int64_t chunks = 32 * pool.num_threads();
  double flops = 0.0;
  const double seconds = best_seconds([&] {
    pool.parallel_for(chunks, [&](int64_t chunk, int) {
      const double done = register_chunk(table);
      if (chunk == 0) flops = done * static_cast<double>(chunks);
    });
  });
  return flops / seconds;
}

}  // namespace espalier::bench
