// The recurrence of Gated DeltaNet, one token after the other along each row's path.
#pragma once

#include "ops/batch_view.h"
#include "ops/state_layout.h"
#include "tensor/tensor.h"

namespace espalier {

// qkv[r] = q heads [Hk, dk], k heads [Hk, dk], v heads [Hv, dv], after convolution. For value head j with key head h = j / (Hv / Hk):
//   beta = sigmoid(b[r, j]); g = -exp(a_log[j]) * softplus(a[r, j] + dt_bias[j])   (softplus(x) = log(1 + e^x), = x above 20)
//   q = q_h / sqrt(sum q_h^2 + 1e-6) / sqrt(dk); k = k_h / sqrt(sum k_h^2 + 1e-6)
//   S = exp(g) S; d = beta (v - S^T k); S = S + k d^T; o[r, j] = S^T q
// S starts from the sequence's slot. FP32 throughout; dk summed in one fixed order. A tree is walked depth first with the parent's state.
// Keep::kAll: S after the last row goes back to the slot; captures get S after their row. Keep::kNone: the slot is untouched.
// Source: model-spec 3.3, 7.1.
struct GatedDeltaRuleArgs {
  const BatchView* batch;
  ConstTensorView qkv;    // [rows, 2 * Hk * dk + Hv * dv] F32
  ConstTensorView a;      // [rows, Hv] F32
  ConstTensorView b;      // [rows, Hv] F32
  const float* a_log;     // [Hv]
  const float* dt_bias;   // [Hv]
  int32_t num_key_heads;  // Hk; Hv, dk, dv are the state layout's
  StateView state;
  int32_t layer;          // of the state layout
  TensorView o;           // [rows, Hv * dv] F32
};

}  // namespace espalier
