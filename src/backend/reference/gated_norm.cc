#include "ops/gated_norm.h"

#include "backend/reference/reference_ops.h"
#include "backend/reference/scalar_math.h"

namespace espalier {

void ReferenceOps::gated_norm(const GatedNormArgs& args) {
  const int64_t n = args.o.shape[2];
  for (int64_t head = 0; head < args.o.shape[0] * args.o.shape[1]; ++head) {
    const float* o = args.o.as<float>() + head * n;
    const float* z = args.z.as<float>() + head * n;
    float* y = args.y.as<float>() + head * n;
    const double scale = 1.0 / std::sqrt(sum_of_squares(o, n) / static_cast<double>(n) + args.eps);
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(o[i] * scale * args.weight[i] * silu(z[i]));
  }
}

}  // namespace espalier
