#include "tensor/dtype.h"

#include <array>
#include <utility>

namespace espalier {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 11> kNames = {{
    {DType::kF32, "F32"}, {DType::kF16, "F16"}, {DType::kBf16, "BF16"}, {DType::kF8E4M3, "F8_E4M3"}, {DType::kU8, "U8"}, {DType::kI8, "I8"},
    {DType::kI16, "I16"}, {DType::kI32, "I32"}, {DType::kI64, "I64"}, {DType::kF64, "F64"}, {DType::kBool, "BOOL"},
}};

}  // namespace

std::string_view dtype_name(DType dtype) {
  for (const auto& [value, name] : kNames) {
    if (value == dtype) return name;
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view safetensors_name) {
  for (const auto& [value, name] : kNames) {
    if (name == safetensors_name) return value;
  }
  return std::nullopt;
}

}  // namespace espalier
