#include "ops/gather_rows.h"

#include <cstring>

#include "backend/reference/reference_ops.h"

namespace espalier {

void ReferenceOps::gather_rows(const GatherRowsArgs& args) {
  for (int32_t i = 0; i < args.num_rows; ++i) {
    const TensorView to = args.y.slice(i, 1);
    std::memcpy(to.data, args.x.slice(args.rows[i], 1).data, to.size_bytes());
  }
}

}  // namespace espalier
