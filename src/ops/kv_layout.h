// Where keys and values lie. A page holds `page_size` consecutive slots of one sequence for every full-attention layer; pages of all
// sequences form one pool and are named by their index in it. Inside a (page, layer) block the order of elements is the backend's
// own; only its size is fixed here, so pages are copied, moved and saved as bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace espalier {

struct KvLayout {
  int32_t num_layers = 0;    // full-attention layers, in model order
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t page_size = 64;    // tokens; a multiple of kAttentionTile
  DType dtype = DType::kBf16;

  size_t layer_bytes() const {  // K and V of one layer in one page
    return 2 * static_cast<size_t>(num_kv_heads) * static_cast<size_t>(head_dim) * static_cast<size_t>(page_size) * dtype_size(dtype);
  }
  size_t page_bytes() const { return static_cast<size_t>(num_layers) * layer_bytes(); }
};

// Attention walks keys in tiles of this many positions, cut at multiples of it: part of the arithmetic, never of the batch.
inline constexpr int32_t kAttentionTile = 64;
// Tiles are folded into a running softmax span by span; spans are cut at multiples of this many positions and merged in ascending order.
inline constexpr int32_t kAttentionSpan = 1024;

struct KvView {
  std::byte* pool = nullptr;  // backend memory, [num_pages, page_bytes]
  KvLayout layout;

  std::byte* block(int32_t page, int32_t layer) const {
    return pool + static_cast<size_t>(page) * layout.page_bytes() + static_cast<size_t>(layer) * layout.layer_bytes();
  }
};

}  // namespace espalier
