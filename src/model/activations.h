// The scratch of a pass: every intermediate tensor of the model, allocated once for the largest pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "checkpoint/model_config.h"
#include "model/backend_arena.h"
#include "tensor/tensor.h"

namespace espalier {

// Blocks of gated attention, Gated DeltaNet and the feed-forward share their memory: a layer runs one after the other.
struct ActivationViews {
  TensorView hidden;  // [rows, hidden_size] F32: the residual stream
  TensorView normed;  // [rows, hidden_size] activation dtype: a block's input
  TensorView final;   // [rows, hidden_size] activation dtype: after the final norm

  // Gated attention.
  TensorView q_gate;     // [rows, num_heads, 2, head_dim] F32
  TensorView k;          // [rows, num_kv_heads, head_dim] F32
  TensorView v;          // [rows, num_kv_heads, head_dim] F32
  TensorView q;          // [rows, num_heads, head_dim] activation dtype
  TensorView attention;  // [rows, num_heads * head_dim] activation dtype

  // Gated DeltaNet.
  TensorView u;      // [rows, conv_dim] F32: before the convolution
  TensorView qkv;    // [rows, conv_dim] F32: after it
  TensorView z;      // [rows, num_value_heads, value_dim] F32
  TensorView a;      // [rows, num_value_heads] F32
  TensorView b;      // [rows, num_value_heads] F32
  TensorView delta;  // [rows, num_value_heads, value_dim] F32: read from the state
  TensorView mixed;  // [rows, num_value_heads, value_dim] activation dtype

  // Feed-forward.
  TensorView gate;   // [rows, intermediate_size] F32
  TensorView up;     // [rows, intermediate_size] F32
  TensorView gated;  // [rows, intermediate_size] activation dtype

  ActivationViews first_rows(int64_t rows) const;
};

class Activations {
 public:
  // Bytes that `allocate` would take: for plans made before loading.
  static size_t planned_bytes(DType activation_dtype, const ModelConfig& config, int32_t max_rows, int32_t max_outputs);
  static Result<Activations> allocate(Backend& backend, const ModelConfig& config, int32_t max_rows, int32_t max_outputs);

  ActivationViews rows(int32_t count) const { return views_.first_rows(count); }
  TensorView outputs(int32_t count) const { return outputs_.slice(0, count); }  // [count, hidden_size] activation dtype
  TensorView logits(int32_t count) const { return logits_.slice(0, count); }    // [count, vocab_rows] F32
  size_t size_bytes() const { return size_bytes_; }

 private:
  void lay_out(BackendArena& arena, DType activation_dtype, const ModelConfig& config, int32_t max_rows, int32_t max_outputs);

  BackendArena arena_;
  size_t size_bytes_ = 0;
  ActivationViews views_;
  TensorView outputs_;
  TensorView logits_;
};

// The same elements as [rows, everything else].
TensorView flattened(const TensorView& view);

}  // namespace espalier
