#include "ops/silu_mul.h"

#include "backend/cpu/cpu_ops.h"

namespace espalier::cpu {

void CpuOps::silu_mul(const SiluMulArgs& args) {
  const ScopedFloatMode mode;
  const auto *gate = args.gate.as<float>(), *up = args.up.as<float>();
  auto* y = args.y.as<uint16_t>();
  // Element by element: where a piece ends does not matter, not even inside a row.
  for_ranges(args.gate.shape.num_elements(), 4096,
             [&](int64_t begin, int64_t end, int) { table_.silu_mul(gate + begin, up + begin, end - begin, y + begin); });
}

}  // namespace espalier::cpu
