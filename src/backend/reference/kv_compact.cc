#include "ops/kv_compact.h"

#include <cstring>

#include "backend/reference/reference_kv.h"
#include "backend/reference/reference_ops.h"

namespace espalier {

void ReferenceOps::kv_compact(const KvCompactArgs& args) {
  const KvLayout& layout = args.kv.layout;
  const size_t row_bytes = static_cast<size_t>(layout.head_dim) * dtype_size(layout.dtype);
  for (int32_t i = 0; i < args.count; ++i) {
    for (int32_t layer = 0; layer < layout.num_layers; ++layer) {
      for (int32_t head = 0; head < layout.num_kv_heads; ++head) {
        for (const KvPart part : {KvPart::kKey, KvPart::kValue}) {
          std::memmove(reference_kv_row(args.kv, layer, args.page_table, args.to[i], part, head),
                       reference_kv_row(args.kv, layer, args.page_table, args.from[i], part, head), row_bytes);
        }
      }
    }
  }
}

}  // namespace espalier
