// Where recurrent states lie. A slot holds everything of one sequence that is not keys and values: for each Gated DeltaNet layer the
// recurrent matrix S [num_value_heads, key_dim, value_dim] F32 and the last (kernel - 1) convolution inputs [kernel - 1, conv_dim] in
// the backend's activation dtype, oldest first; and one post-final-norm hidden row [hidden_size] (activation dtype), which the MTP
// layer needs to go on. Slots form one pool and are named by their index. A slot of zeros is the state of an empty sequence.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace espalier {

struct StateLayout {
  int32_t num_layers = 0;  // Gated DeltaNet layers, in model order
  int32_t num_value_heads = 0;
  int32_t key_head_dim = 0;
  int32_t value_head_dim = 0;
  int32_t conv_dim = 0;
  int32_t conv_kernel = 4;
  int32_t hidden_size = 0;
  DType activation_dtype = DType::kBf16;

  size_t recurrent_bytes() const {  // of one layer
    return static_cast<size_t>(num_value_heads) * static_cast<size_t>(key_head_dim) * static_cast<size_t>(value_head_dim) * sizeof(float);
  }
  size_t conv_bytes() const {  // of one layer
    return aligned(static_cast<size_t>(conv_kernel - 1) * static_cast<size_t>(conv_dim) * dtype_size(activation_dtype));
  }
  size_t hidden_bytes() const { return aligned(static_cast<size_t>(hidden_size) * dtype_size(activation_dtype)); }
  size_t slot_bytes() const { return static_cast<size_t>(num_layers) * (recurrent_bytes() + conv_bytes()) + hidden_bytes(); }

  size_t recurrent_offset(int32_t layer) const { return static_cast<size_t>(layer) * recurrent_bytes(); }
  size_t conv_offset(int32_t layer) const {
    return static_cast<size_t>(num_layers) * recurrent_bytes() + static_cast<size_t>(layer) * conv_bytes();
  }
  size_t hidden_offset() const { return static_cast<size_t>(num_layers) * (recurrent_bytes() + conv_bytes()); }

 private:
  static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
};

struct StateView {
  std::byte* pool = nullptr;  // backend memory, [num_slots, slot_bytes]
  StateLayout layout;

  std::byte* slot(int32_t index) const { return pool + static_cast<size_t>(index) * layout.slot_bytes(); }
  float* recurrent(int32_t index, int32_t layer) const { return reinterpret_cast<float*>(slot(index) + layout.recurrent_offset(layer)); }
  std::byte* conv(int32_t index, int32_t layer) const { return slot(index) + layout.conv_offset(layer); }
  std::byte* hidden(int32_t index) const { return slot(index) + layout.hidden_offset(); }
};

}  // namespace espalier
