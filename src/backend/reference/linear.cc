#include "ops/linear.h"

#include "backend/reference/reference_ops.h"
#include "backend/reference/reference_weight.h"

namespace espalier {

void ReferenceOps::linear(const LinearArgs& args) {
  const auto& weight = static_cast<const ReferenceWeight&>(*args.w);
  for (int64_t r = 0; r < args.x.rows(); ++r) {
    const float* x = args.x.as<float>() + r * weight.k();
    float* y = args.y.as<float>() + r * weight.n();
    for (int64_t n = 0; n < weight.n(); ++n) {
      const float* w = weight.row(n);
      double sum = 0.0;
      for (int64_t k = 0; k < weight.k(); ++k) sum += static_cast<double>(x[k]) * static_cast<double>(w[k]);
      const auto product = static_cast<float>(sum);
      y[n] = args.store == Store::kAdd ? y[n] + product : product;
    }
  }
}

}  // namespace espalier
