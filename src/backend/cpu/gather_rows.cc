#include "ops/gather_rows.h"

#include <cstring>

#include "backend/cpu/cpu_ops.h"

namespace espalier::cpu {

void CpuOps::gather_rows(const GatherRowsArgs& args) {
  if (args.x.rows() == 0) return;
  const size_t row_bytes = args.x.size_bytes() / static_cast<size_t>(args.x.rows());
  const auto* x = args.x.as<std::byte>();
  auto* y = args.y.as<std::byte>();
  for (int32_t i = 0; i < args.num_rows; ++i) {
    std::memcpy(y + static_cast<size_t>(i) * row_bytes, x + static_cast<size_t>(args.rows[i]) * row_bytes, row_bytes);
  }
}

}  // namespace espalier::cpu
