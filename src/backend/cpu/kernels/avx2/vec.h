// Eight FP32 lanes of AVX2 with FMA.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace espalier::cpu {
namespace {

using Vec = __m256;
constexpr int64_t kLanes = 8;

// All ones in the first n lanes.
inline __m256i first_lanes(int64_t n) {
  const int count = n >= kLanes ? static_cast<int>(kLanes) : static_cast<int>(n);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline Vec load(const float* p) { return _mm256_loadu_ps(p); }
inline Vec load_part(const float* p, int64_t n) { return n >= kLanes ? load(p) : _mm256_maskload_ps(p, first_lanes(n)); }
inline void store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
inline void store_part(float* p, int64_t n, Vec v) {
  if (n >= kLanes) return store(p, v);
  _mm256_maskstore_ps(p, first_lanes(n), v);
}
inline Vec broadcast(float x) { return _mm256_set1_ps(x); }

inline Vec widen(__m128i half) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16)); }
// FP32 bits rounded to nearest even at bit 16; a NaN keeps its upper half and becomes quiet.
inline __m256i round_bits(Vec v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  return _mm256_and_si256(_mm256_blendv_epi8(rounded, quiet, nan), _mm256_set1_epi32(static_cast<int>(0xFFFF0000u)));
}
inline Vec round_bf16(Vec v) { return _mm256_castsi256_ps(round_bits(v)); }
inline __m128i narrow(Vec v) {
  const __m256i words = _mm256_srli_epi32(round_bits(v), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}
inline Vec load_bf16(const uint16_t* p) { return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
inline void store_bf16(uint16_t* p, Vec v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(v)); }
inline Vec load_bf16_part(const uint16_t* p, int64_t n) {
  if (n >= kLanes) return load_bf16(p);
  alignas(16) uint16_t words[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) words[i] = p[i];
  return load_bf16(words);
}
inline void store_bf16_part(uint16_t* p, int64_t n, Vec v) {
  if (n >= kLanes) return store_bf16(p, v);
  alignas(16) uint16_t words[kLanes];
  store_bf16(words, v);
  for (int64_t i = 0; i < n; ++i) p[i] = words[i];
}

inline Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
inline Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
inline Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
inline Vec div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
// Of a NaN and a number, the second operand.
inline Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
inline Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
inline Vec abs(Vec a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
inline Vec round(Vec a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// 2^n for integral n in [-126, 127].
inline Vec pow2(Vec n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
// Lanes from n on replaced by `fill`.
inline Vec first_or(Vec v, int64_t n, Vec fill) { return _mm256_blendv_ps(fill, v, _mm256_castsi256_ps(first_lanes(n))); }

// Eight BF16 pairs: the first of each pair, the second of each pair.
inline void load_pairs(const uint16_t* p, Vec& first, Vec& second) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  first = _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  second = _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(0xFFFF0000u))));
}

inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

inline float reduce_add(Vec v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float reduce_max(Vec v) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

}  // namespace
}  // namespace espalier::cpu
