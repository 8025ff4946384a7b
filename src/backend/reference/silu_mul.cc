#include "ops/silu_mul.h"

#include "backend/reference/reference_ops.h"
#include "backend/reference/scalar_math.h"

namespace espalier {

void ReferenceOps::silu_mul(const SiluMulArgs& args) {
  const float* gate = args.gate.as<float>();
  const float* up = args.up.as<float>();
  for (int64_t i = 0; i < args.y.shape.num_elements(); ++i) args.y.as<float>()[i] = static_cast<float>(silu(gate[i]) * up[i]);
}

}  // namespace espalier
