// A weight matrix of the CPU backend: BF16 panels of 16 outputs, [n / 16][k / 2][16][2], n and k padded with zeros, so that one 64-byte
// load holds 16 outputs x 2 k and a panel is read as one stream. F16 and F32 sources are rounded to BF16, to nearest even.
#pragma once

#include "backend/cpu/kernels/kernel_table.h"
#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "ops/linear.h"
#include "tensor/tensor.h"

namespace espalier::cpu {

class PackedWeight final : public PreparedWeight {
 public:
  // weight [n, k] BF16, F16 or F32, possibly misaligned.
  PackedWeight(const ConstTensorView& weight, ThreadPool& pool);

  static size_t packed_bytes(int64_t n, int64_t k) { return static_cast<size_t>(num_panels(n) * panel_elements(k)) * sizeof(uint16_t); }
  static int64_t num_panels(int64_t n) { return (n + kPanelRows - 1) / kPanelRows; }
  static int64_t padded(int64_t k) { return (k + kPackedK - 1) / kPackedK * kPackedK; }
  static int64_t panel_elements(int64_t k) { return padded(k) * kPanelRows; }

  size_t size_bytes() const override { return buffer_.size(); }
  const uint16_t* panel(int64_t index) const { return static_cast<const uint16_t*>(buffer_.data()) + index * panel_elements(k()); }

 private:
  AlignedBuffer buffer_;
};

}  // namespace espalier::cpu
