// A weight matrix of the reference backend: FP32, row-major.
#pragma once

#include <utility>

#include "ops/linear.h"
#include "tensor/tensor.h"

namespace espalier {

class ReferenceWeight final : public PreparedWeight {
 public:
  explicit ReferenceWeight(const ConstTensorView& weight) : PreparedWeight(weight.shape[0], weight.shape[1]), values_(to_f32(weight)) {}

  size_t size_bytes() const override { return values_.view().size_bytes(); }
  const float* row(int64_t n) const { return values_.as<float>() + n * k(); }

 private:
  Tensor values_;
};

}  // namespace espalier
