// Gated grouped-query attention over pages, for chains and trees alike.
#pragma once

#include "ops/batch_view.h"
#include "ops/kv_layout.h"
#include "tensor/tensor.h"

namespace espalier {

// Row r sees the positions 0 .. index[r] of its sequence: those below `base` at their own slots, those from `base` on at the slots
// of its ancestors (itself included). Query head h reads KV head h / (num_heads / num_kv_heads).
//   s_j = scale * (q . k_j); softmax over the visible j in FP32; o = sum_j p_j v_j; y = o * sigmoid(gate), gate = q_gate[r, h, 1, :].
// Keys are walked in ascending position, in tiles of kAttentionTile and spans of kAttentionSpan cut at fixed absolute positions;
// q k^T and p v use the summation order of LinearArgs. So y[r] does not depend on what else is in the pass. Source: model-spec 3.5, 7.5.
struct AttentionArgs {
  const BatchView* batch;
  ConstTensorView q;       // [rows, num_heads, head_dim] activation dtype
  ConstTensorView q_gate;  // [rows, num_heads, 2, head_dim] F32
  KvView kv;
  int32_t layer;           // of the KV layout
  float scale;
  TensorView y;            // [rows, num_heads * head_dim] activation dtype
};

}  // namespace espalier
