#include "backend/cpu/kv_tile.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace espalier::cpu {
namespace {

TEST(KvTile, OffsetsFillTheTileOnce) {
  for (const int64_t head_dim : {32, 64, 256}) {
    std::set<int64_t> keys, values;
    for (int64_t position = 0; position < kTile; ++position) {
      for (int64_t d = 0; d < head_dim; ++d) {
        keys.insert(key_offset(head_dim, position, d));
        values.insert(value_offset(position, d));
      }
    }
    for (const auto& offsets : {keys, values}) {
      EXPECT_EQ(static_cast<int64_t>(offsets.size()), kTile * head_dim);
      EXPECT_EQ(*offsets.begin(), 0);
      EXPECT_EQ(*offsets.rbegin(), kTile * head_dim - 1);
    }
  }
}

TEST(KvTile, TilesOfAllHeadsAndPagesDoNotOverlapAndFillTheirLayer) {
  const KvLayout layout{.num_layers = 2, .num_kv_heads = 3, .head_dim = 32, .page_size = 128, .dtype = DType::kBf16};
  std::vector<std::byte> pool(2 * layout.page_bytes());
  const KvView kv{pool.data(), layout};
  const int32_t page_table[] = {1, 0};
  std::set<const uint16_t*> parts;
  for (int32_t layer = 0; layer < 2; ++layer) {
    for (int32_t head = 0; head < 3; ++head) {
      for (int64_t slot = 0; slot < 256; slot += 64) {
        const KvTile tile = kv_tile(kv, layer, page_table, slot, head);
        EXPECT_EQ(kv_tile(kv, layer, page_table, slot + 63, head).keys, tile.keys);
        parts.insert(tile.keys);
        parts.insert(tile.values);
        const auto* block = reinterpret_cast<const uint16_t*>(kv.block(page_table[slot / 128], layer));
        for (const uint16_t* part : {tile.keys, tile.values}) {
          EXPECT_EQ((part - block) % (64 * 32), 0);
          EXPECT_GE(part, block);
          EXPECT_LE(part + 64 * 32, block + layout.layer_bytes() / 2);
        }
      }
    }
  }
  EXPECT_EQ(parts.size(), 2u * 3 * 4 * 2);
}

}  // namespace
}  // namespace espalier::cpu
