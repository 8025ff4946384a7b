// How the CPU backend lays out a (page, layer) block of BF16 keys and values: per KV head, per tile of 64 positions, the keys
// packed like a weight matrix [64, head_dim] ([4][head_dim / 2][16 keys][2]) and the values like one of [head_dim, 64]
// ([head_dim / 16][32][16 dims][2 positions]). So q k^T and p v are the product of LinearArgs with other operands.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/kernel_table.h"
#include "ops/kv_layout.h"

namespace espalier::cpu {

static_assert(kTile == kAttentionTile);

struct KvTile {
  uint16_t* keys;  // kTile * head_dim elements each
  uint16_t* values;
};

// The tile that holds `slot` of the sequence whose pages `page_table` lists.
inline KvTile kv_tile(const KvView& kv, int32_t layer, const int32_t* page_table, int64_t slot, int32_t kv_head) {
  const int64_t page_size = kv.layout.page_size;
  const int64_t elements = kTile * kv.layout.head_dim;
  const int64_t index = kv_head * (page_size / kTile) + slot % page_size / kTile;
  auto* block = reinterpret_cast<uint16_t*>(kv.block(page_table[slot / page_size], layer));
  return {block + 2 * index * elements, block + (2 * index + 1) * elements};
}

// Elements (position, d) and (position, d + 1) of a key are neighbours, d even.
inline int64_t key_offset(int64_t head_dim, int64_t position, int64_t d) {
  return position / kPanelRows * kPanelRows * head_dim + d / 2 * 2 * kPanelRows + position % kPanelRows * 2 + d % 2;
}
inline int64_t value_offset(int64_t position, int64_t d) {
  return d / kPanelRows * kPanelRows * kTile + position / 2 * 2 * kPanelRows + d % kPanelRows * 2 + position % 2;
}

inline void store_key(const KvTile& tile, int64_t head_dim, int64_t position, const uint16_t* key) {
  uint16_t* to = tile.keys + key_offset(head_dim, position, 0);
  for (int64_t d = 0; d < head_dim; d += 2, to += 2 * kPanelRows) {
    to[0] = key[d];
    to[1] = key[d + 1];
  }
}

inline void store_value(const KvTile& tile, int64_t head_dim, int64_t position, const uint16_t* value) {
  for (int64_t d = 0; d < head_dim; ++d) tile.values[value_offset(position, d)] = value[d];
}

// Key and value of one position of a tile to another position of another (or the same) tile.
inline void copy_position(const KvTile& from, int64_t from_position, const KvTile& to, int64_t to_position, int64_t head_dim) {
  for (int64_t d = 0; d < head_dim; d += 2) {
    const int64_t source = key_offset(head_dim, from_position, d), target = key_offset(head_dim, to_position, d);
    to.keys[target] = from.keys[source];
    to.keys[target + 1] = from.keys[source + 1];
  }
  for (int64_t d = 0; d < head_dim; ++d) to.values[value_offset(to_position, d)] = from.values[value_offset(from_position, d)];
}

}  // namespace espalier::cpu
