// Element types of tensors, as they are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace espalier {

enum class DType : uint8_t { kF32, kF16, kBf16, kF8E4M3, kU8, kI8, kI16, kI32, kI64, kF64, kBool };

// Bytes of one element.
constexpr size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kF32: case DType::kI32: return 4;
    case DType::kF16: case DType::kBf16: case DType::kI16: return 2;
    case DType::kI64: case DType::kF64: return 8;
    case DType::kF8E4M3: case DType::kU8: case DType::kI8: case DType::kBool: return 1;
  }
  return 0;
}

// The safetensors spelling: "F32", "BF16", "F8_E4M3", ...
std::string_view dtype_name(DType dtype);
std::optional<DType> parse_dtype(std::string_view safetensors_name);

}  // namespace espalier
