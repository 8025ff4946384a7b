// From projections to attention: head norms, rotary embedding, and the keys and values into their pages.
#pragma once

#include <array>

#include "ops/batch_view.h"
#include "ops/kv_layout.h"
#include "tensor/tensor.h"

namespace espalier {

struct RotaryParams {
  int32_t rotary_dim = 64;                        // leading dimensions that turn, even; pairs (i, i + rotary_dim / 2)
  double theta = 1e7;
  std::array<int32_t, 3> mrope_section = {11, 11, 10};  // frequencies per stream (temporal, height, width), interleaved
};

// For each row r: query head h is q_gate[r, h, 0, :], its output gate q_gate[r, h, 1, :] (left for AttentionArgs).
//   q = rotate(znorm(q head, q_norm)), k = rotate(znorm(k head, k_norm)); v as it is.
//   rotate: angle_i = position * (1 / theta^(2 i / rotary_dim)), FP32, power and reciprocal each rounded (at long positions one ulp of
//   the frequency shows); x'_i = x_i cos - x_{i+R/2} sin, x'_{i+R/2} = x_{i+R/2} cos + x_i sin;
//   frequency i turns by the height stream if i % 3 == 1 and i < 3 * section[1], by the width stream if i % 3 == 2 and
//   i < 3 * section[2], else by the temporal stream.
// q is written in activation dtype; k and v are rounded to the KV dtype and written to slot kv_slot[r] of the row's sequence.
// Sources: model-spec 3.1, 3.5.
struct AttentionInputArgs {
  const BatchView* batch;
  ConstTensorView q_gate;  // [rows, num_heads, 2, head_dim] F32
  ConstTensorView k;       // [rows, num_kv_heads, head_dim] F32
  ConstTensorView v;       // [rows, num_kv_heads, head_dim] F32
  const float* q_norm;     // [head_dim], zero-centred
  const float* k_norm;     // [head_dim], zero-centred
  float eps;
  RotaryParams rotary;
  KvView kv;
  int32_t layer;           // of the KV layout
  TensorView q;            // [rows, num_heads, head_dim] activation dtype
};

}  // namespace espalier
