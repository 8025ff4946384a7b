// Depthwise causal convolution of Gated DeltaNet with SiLU, along each row's path.
#pragma once

#include "ops/batch_view.h"
#include "ops/state_layout.h"
#include "tensor/tensor.h"

namespace espalier {

// u' = u rounded to the state layout's activation dtype (what is kept between passes is what every row reads).
//   y[r, c] = silu(sum_{j=0..K-1} weight[c, j] * w_j), w = the last K of (the K-1 kept inputs of the sequence, then u' of r's ancestors
//   and of r itself), summed in FP32 from j = 0 up. Inputs before the start of a sequence are 0.
// Keep::kAll: the sequence's kept inputs become the last K-1 of its path; captures get theirs after their row. Source: model-spec 3.3, 7.4.
struct CausalConvArgs {
  const BatchView* batch;
  ConstTensorView u;    // [rows, conv_dim] F32
  const float* weight;  // [conv_dim, K]
  StateView state;
  int32_t layer;        // of the state layout
  TensorView y;         // [rows, conv_dim] F32
};

}  // namespace espalier
