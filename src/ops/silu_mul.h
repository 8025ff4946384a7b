// The gate of the feed-forward block.
#pragma once

#include "tensor/tensor.h"

namespace espalier {

// y[r, i] = silu(gate[r, i]) * up[r, i], silu(x) = x / (1 + e^-x), FP32, one rounding.
struct SiluMulArgs {
  ConstTensorView gate;  // [rows, n] F32
  ConstTensorView up;    // [rows, n] F32
  TensorView y;          // [rows, n] activation dtype
};

}  // namespace espalier
