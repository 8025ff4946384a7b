// Sixteen FP32 lanes of AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace espalier::cpu {
namespace {

using Vec = __m512;
constexpr int64_t kLanes = 16;

inline __mmask16 first_lanes(int64_t n) { return n >= kLanes ? static_cast<__mmask16>(0xFFFF) : static_cast<__mmask16>((1u << n) - 1u); }

inline Vec load(const float* p) { return _mm512_loadu_ps(p); }
inline Vec load_part(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
inline void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
inline void store_part(float* p, int64_t n, Vec v) { _mm512_mask_storeu_ps(p, first_lanes(n), v); }
inline Vec broadcast(float x) { return _mm512_set1_ps(x); }

inline Vec widen(__m256i half) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16)); }
inline __m256i narrow(Vec v) { return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)); }
inline Vec load_bf16(const uint16_t* p) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
inline Vec load_bf16_part(const uint16_t* p, int64_t n) { return widen(_mm256_maskz_loadu_epi16(first_lanes(n), p)); }
inline void store_bf16(uint16_t* p, Vec v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(v)); }
inline void store_bf16_part(uint16_t* p, int64_t n, Vec v) { _mm256_mask_storeu_epi16(p, first_lanes(n), narrow(v)); }
inline Vec round_bf16(Vec v) { return widen(narrow(v)); }

inline Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
inline Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
inline Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
inline Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
// Of a NaN and a number, the second operand.
inline Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
inline Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
inline Vec abs(Vec a) { return _mm512_abs_ps(a); }
inline Vec round(Vec a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// 2^n for integral n in [-126, 127].
inline Vec pow2(Vec n) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
}
// Lanes from n on replaced by `fill`.
inline Vec first_or(Vec v, int64_t n, Vec fill) { return _mm512_mask_mov_ps(fill, first_lanes(n), v); }

// Sixteen BF16 pairs: the first of each pair, the second of each pair.
inline void load_pairs(const uint16_t* p, Vec& first, Vec& second) {
  const __m512i bits = _mm512_loadu_si512(p);
  first = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  second = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u))));
}

inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

inline float reduce_add(Vec v) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float reduce_max(Vec v) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

}  // namespace
}  // namespace espalier::cpu
