// Zero-centred RMS normalisation.
#pragma once

#include "tensor/tensor.h"

namespace espalier {

// y[r, i] = x[r, i] * (1 / sqrt(mean_i x[r, i]^2 + eps)) * (1 + weight[i]), FP32 throughout, one rounding to y's dtype.
// Source: model-spec 3.1 (ZNorm). x and y do not overlap.
struct RmsNormArgs {
  ConstTensorView x;    // [rows, n] F32
  const float* weight;  // [n]
  float eps;
  TensorView y;         // [rows, n] activation dtype
};

}  // namespace espalier
