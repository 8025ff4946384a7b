#include "ops/gated_norm.h"

#include "backend/cpu/cpu_ops.h"

namespace espalier::cpu {

void CpuOps::gated_norm(const GatedNormArgs& args) {
  const ScopedFloatMode mode;
  const int64_t n = args.o.shape[args.o.shape.rank() - 1];
  const int64_t heads = args.o.shape.num_elements() / n;
  const auto *o = args.o.as<float>(), *z = args.z.as<float>();
  auto* y = args.y.as<uint16_t>();
  for_ranges(heads, 32, [&](int64_t begin, int64_t end, int) {
    for (int64_t h = begin; h < end; ++h) table_.gated_norm(o + h * n, z + h * n, args.weight, args.eps, n, y + h * n);
  });
}

}  // namespace espalier::cpu
