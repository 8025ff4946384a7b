#include "ops/kv_compact.h"

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/kv_tile.h"

namespace espalier::cpu {

void CpuOps::kv_compact(const KvCompactArgs& args) {
  const KvLayout& layout = args.kv.layout;
  for (int32_t layer = 0; layer < layout.num_layers; ++layer) {
    for (int32_t head = 0; head < layout.num_kv_heads; ++head) {
      for (int32_t i = 0; i < args.count; ++i) {
        if (args.from[i] == args.to[i]) continue;
        copy_position(kv_tile(args.kv, layer, args.page_table, args.from[i], head), args.from[i] % kTile,
                      kv_tile(args.kv, layer, args.page_table, args.to[i], head), args.to[i] % kTile, layout.head_dim);
      }
    }
  }
}

}  // namespace espalier::cpu
