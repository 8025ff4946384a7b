// Scalar conversions between FP32 and the stored formats, bit for bit as the formats define them: round to nearest even.
// Formulas: IEEE 754 binary16; bfloat16 = the upper half of binary32; OCP E4M3 (fn): bias 7, max 448, NaN 0x7F, no infinity.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace espalier {

inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Ties to even; NaN stays a quiet NaN.
inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float e4m3_to_f32(uint8_t bits);
uint8_t f32_to_e4m3(float value);  // saturates to +-448

// Element `index` of an array of F32, BF16, F16, F64 or F8_E4M3; the array read from may be misaligned.
float load_as_f32(const void* data, DType dtype, size_t index);
void store_from_f32(void* data, DType dtype, size_t index, float value);

}  // namespace espalier
