// Per-head RMS norm of Gated DeltaNet's output, then its gate.
#pragma once

#include "tensor/tensor.h"

namespace espalier {

// Per head of n values: y = o / sqrt(mean(o^2) + eps) * weight * silu(z), all FP32, one rounding. weight is plain (no + 1).
// Source: model-spec 3.1 (GNorm).
struct GatedNormArgs {
  ConstTensorView o;    // [rows, heads, n] F32
  ConstTensorView z;    // [rows, heads, n] F32
  const float* weight;  // [n]
  float eps;
  TensorView y;         // [rows, heads, n] activation dtype
};

}  // namespace espalier
