#include "ops/rms_norm.h"

#include "backend/cpu/cpu_ops.h"

namespace espalier::cpu {

void CpuOps::rms_norm(const RmsNormArgs& args) {
  const ScopedFloatMode mode;
  const int64_t n = args.x.shape[args.x.shape.rank() - 1];
  const int64_t rows = args.x.shape.num_elements() / n;
  const auto* x = args.x.as<float>();
  auto* y = args.y.as<uint16_t>();
  for_ranges(rows, 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) table_.rms_norm(x + r * n, args.weight, args.eps, n, y + r * n);
  });
}

}  // namespace espalier::cpu
