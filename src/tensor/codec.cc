#include "tensor/codec.h"

#include <cmath>
#include <cstring>

#include "base/result.h"

namespace espalier {

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {                                               // subnormal: units of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float e4m3_to_f32(uint8_t bits) {
  const uint32_t exponent = (bits >> 3) & 0xFu;
  const uint32_t mantissa = bits & 7u;
  if (exponent == 0xF && mantissa == 7) return std::bit_cast<float>(0x7FC00000u | (static_cast<uint32_t>(bits & 0x80u) << 24));
  const float magnitude = exponent == 0 ? static_cast<float>(mantissa) * 0x1p-9f
                                        : std::bit_cast<float>(((exponent + 120) << 23) | (mantissa << 20));
  return (bits & 0x80u) != 0 ? -magnitude : magnitude;
}

uint8_t f32_to_e4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint8_t>(sign | 0x7Fu);
  if (magnitude >= std::bit_cast<uint32_t>(448.0f)) return static_cast<uint8_t>(sign | 0x7Eu);
  if (magnitude < std::bit_cast<uint32_t>(0x1p-6f)) {  // subnormal: units of 2^-9
    return static_cast<uint8_t>(sign | static_cast<uint8_t>(std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p9f)));
  }
  const uint32_t rounded = magnitude + 0x7FFFFu + ((magnitude >> 20) & 1u);
  return static_cast<uint8_t>(sign | ((rounded - (120u << 23)) >> 20));
}

float load_as_f32(const void* data, DType dtype, size_t index) {
  const auto element = [&]<typename T>(T value) {  // by bytes: arrays from files may lie anywhere
    std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof value, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::kF32: return element(float{});
    case DType::kBf16: return bf16_to_f32(element(uint16_t{}));
    case DType::kF16: return f16_to_f32(element(uint16_t{}));
    case DType::kF8E4M3: return e4m3_to_f32(element(uint8_t{}));
    case DType::kF64: return static_cast<float>(element(double{}));
    default: break;
  }
  ESPALIER_CHECK(!"a floating-point dtype");
  return 0;
}

void store_from_f32(void* data, DType dtype, size_t index, float value) {
  switch (dtype) {
    case DType::kF32: static_cast<float*>(data)[index] = value; return;
    case DType::kBf16: static_cast<uint16_t*>(data)[index] = f32_to_bf16(value); return;
    case DType::kF16: static_cast<uint16_t*>(data)[index] = f32_to_f16(value); return;
    case DType::kF8E4M3: static_cast<uint8_t*>(data)[index] = f32_to_e4m3(value); return;
    default: ESPALIER_CHECK(!"a storable floating-point dtype");
  }
}

}  // namespace espalier
