// How the reference backend lays out a (page, layer) block: K [num_kv_heads, page_size, head_dim], then V likewise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/kv_layout.h"

namespace espalier {

enum class KvPart : int32_t { kKey = 0, kValue = 1 };

// The head_dim stored elements of `slot` of the sequence whose pages `page_table` lists.
inline std::byte* reference_kv_row(const KvView& kv, int32_t layer, const int32_t* page_table, int32_t slot, KvPart part, int32_t kv_head) {
  const KvLayout& layout = kv.layout;
  const int32_t row = (static_cast<int32_t>(part) * layout.num_kv_heads + kv_head) * layout.page_size + slot % layout.page_size;
  return kv.block(page_table[slot / layout.page_size], layer) +
         static_cast<size_t>(row) * static_cast<size_t>(layout.head_dim) * dtype_size(layout.dtype);
}

}  // namespace espalier
