#include "ops/rms_norm.h"

#include "backend/reference/reference_ops.h"
#include "backend/reference/scalar_math.h"

namespace espalier {

void ReferenceOps::rms_norm(const RmsNormArgs& args) {
  const int64_t n = args.x.shape[1];
  for (int64_t r = 0; r < args.x.rows(); ++r) {
    const float* x = args.x.as<float>() + r * n;
    float* y = args.y.as<float>() + r * n;
    const double scale = 1.0 / std::sqrt(sum_of_squares(x, n) / static_cast<double>(n) + args.eps);
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] * scale * (1.0 + args.weight[i]));
  }
}

}  // namespace espalier
