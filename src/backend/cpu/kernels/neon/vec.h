// Four FP32 lanes of Armv8.2 Advanced SIMD.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace espalier::cpu {
namespace {

using Vec = float32x4_t;
constexpr int64_t kLanes = 4;

inline uint32x4_t first_lanes(int64_t n) {
  const uint32_t indices[kLanes] = {0, 1, 2, 3};
  return vcltq_u32(vld1q_u32(indices), vdupq_n_u32(n >= kLanes ? 4u : static_cast<uint32_t>(n)));
}

inline Vec load(const float* p) { return vld1q_f32(p); }
inline Vec load_part(const float* p, int64_t n) {
  if (n >= kLanes) return load(p);
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i] = p[i];
  return vld1q_f32(lanes);
}
inline void store(float* p, Vec v) { vst1q_f32(p, v); }
inline void store_part(float* p, int64_t n, Vec v) {
  if (n >= kLanes) return store(p, v);
  float lanes[kLanes];
  vst1q_f32(lanes, v);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
inline Vec broadcast(float x) { return vdupq_n_f32(x); }

inline Vec widen(uint16x4_t half) { return vreinterpretq_f32_u32(vshll_n_u16(half, 16)); }
// FP32 bits rounded to nearest even at bit 16; a NaN keeps its upper half and becomes quiet.
inline uint16x4_t narrow(Vec v) {
  const uint32x4_t bits = vreinterpretq_u32_f32(v);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), rounded, quiet), 16);
}
inline Vec round_bf16(Vec v) { return widen(narrow(v)); }
inline Vec load_bf16(const uint16_t* p) { return widen(vld1_u16(p)); }
inline void store_bf16(uint16_t* p, Vec v) { vst1_u16(p, narrow(v)); }
inline Vec load_bf16_part(const uint16_t* p, int64_t n) {
  if (n >= kLanes) return load_bf16(p);
  uint16_t words[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) words[i] = p[i];
  return load_bf16(words);
}
inline void store_bf16_part(uint16_t* p, int64_t n, Vec v) {
  if (n >= kLanes) return store_bf16(p, v);
  uint16_t words[kLanes];
  store_bf16(words, v);
  for (int64_t i = 0; i < n; ++i) p[i] = words[i];
}

inline Vec add(Vec a, Vec b) { return vaddq_f32(a, b); }
inline Vec sub(Vec a, Vec b) { return vsubq_f32(a, b); }
inline Vec mul(Vec a, Vec b) { return vmulq_f32(a, b); }
inline Vec div(Vec a, Vec b) { return vdivq_f32(a, b); }
inline Vec fma(Vec a, Vec b, Vec c) { return vfmaq_f32(c, a, b); }
inline Vec max(Vec a, Vec b) { return vmaxq_f32(a, b); }
inline Vec min(Vec a, Vec b) { return vminq_f32(a, b); }
inline Vec abs(Vec a) { return vabsq_f32(a); }
inline Vec round(Vec a) { return vrndnq_f32(a); }
// 2^n for integral n in [-126, 127].
inline Vec pow2(Vec n) { return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)), 23)); }
// Lanes from n on replaced by `fill`.
inline Vec first_or(Vec v, int64_t n, Vec fill) { return vbslq_f32(first_lanes(n), v, fill); }

// Four BF16 pairs: the first of each pair, the second of each pair.
inline void load_pairs(const uint16_t* p, Vec& first, Vec& second) {
  const uint32x4_t bits = vreinterpretq_u32_u16(vld1q_u16(p));
  first = vreinterpretq_f32_u32(vshlq_n_u32(bits, 16));
  second = vreinterpretq_f32_u32(vandq_u32(bits, vdupq_n_u32(0xFFFF0000u)));
}

inline float square_root(float x) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0); }

inline float reduce_add(Vec v) {
  const float32x2_t two = vadd_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float reduce_max(Vec v) { return vmaxvq_f32(v); }

}  // namespace
}  // namespace espalier::cpu
