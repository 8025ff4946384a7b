#include "backend/cpu/packed_weight.h"

#include <algorithm>
#include <cstring>

#include "tensor/codec.h"

namespace espalier::cpu {
namespace {

// A source row as BF16; `row` may be misaligned.
void load_row(const std::byte* row, DType dtype, int64_t begin, int64_t count, uint16_t* out) {
  const std::byte* from = row + static_cast<size_t>(begin) * dtype_size(dtype);
  switch (dtype) {
    case DType::kBf16:
      std::memcpy(out, from, static_cast<size_t>(count) * sizeof(uint16_t));
      return;
    case DType::kF16:
      for (int64_t i = 0; i < count; ++i) {
        uint16_t bits;
        std::memcpy(&bits, from + i * 2, sizeof bits);
        out[i] = f32_to_bf16(f16_to_f32(bits));
      }
      return;
    default:
      ESPALIER_CHECK(dtype == DType::kF32);
      for (int64_t i = 0; i < count; ++i) {
        float value;
        std::memcpy(&value, from + i * 4, sizeof value);
        out[i] = f32_to_bf16(value);
      }
  }
}

}  // namespace

PackedWeight::PackedWeight(const ConstTensorView& weight, ThreadPool& pool)
    : PreparedWeight(weight.shape[0], weight.shape[1]), buffer_(packed_bytes(weight.shape[0], weight.shape[1])) {
  const auto* source = static_cast<const std::byte*>(weight.data);
  const size_t row_bytes = static_cast<size_t>(k()) * dtype_size(weight.dtype);
  pool.parallel_for(num_panels(n()), [&](int64_t index, int) {
    auto* to = static_cast<uint16_t*>(buffer_.data()) + index * panel_elements(k());
    constexpr int64_t kBlock = 128;  // of K: 16 rows of it and their panel stay in the first cache
    uint16_t row[kBlock];
    const int64_t rows = std::min(kPanelRows, n() - index * kPanelRows);
    for (int64_t begin = 0; begin < k(); begin += kBlock) {
      const int64_t count = std::min(kBlock, k() - begin);
      for (int64_t r = 0; r < rows; ++r) {
        load_row(source + static_cast<size_t>(index * kPanelRows + r) * row_bytes, weight.dtype, begin, count, row);
        for (int64_t i = 0; i < count; ++i) to[(begin + i) / 2 * 2 * kPanelRows + r * 2 + (begin + i) % 2] = row[i];
      }
    }
  });
}

}  // namespace espalier::cpu
