#include "ops/gated_norm.h"

#include "backend/op_test_support.h"

namespace espalier::testing {
namespace {

using GatedNormTest = OpTest;

TEST_P(GatedNormTest, NormalisesEachHeadThenGates) {
  Random random(9);
  for (const int64_t n : {16, 50, 128}) {
    for (const int64_t heads : {1, 3, 6}) {
      const Tensor weight = random_tensor(DType::kF32, {n}, random, 0.5f, 1.5f);
      for (const int64_t rows : kRowCounts) {
        const Tensor o = random_tensor(DType::kF32, {rows, heads, n}, random, -0.01f, 0.01f);
        const Tensor z = random_tensor(DType::kF32, {rows, heads, n}, random, -6.0f, 6.0f);
        Tensor y(activation(), {rows, heads, n});
        ops().gated_norm({.o = o.view(), .z = z.view(), .weight = weight.as<float>(), .eps = 1e-6f, .y = y.view()});
        std::vector<double> expected;
        for (int64_t head = 0; head < rows * heads; ++head) {
          double squares = 0.0;
          for (int64_t i = 0; i < n; ++i) squares += value(o.view(), head * n + i) * value(o.view(), head * n + i);
          for (int64_t i = 0; i < n; ++i) {
            const double gate = value(z.view(), head * n + i);
            expected.push_back(value(o.view(), head * n + i) / std::sqrt(squares / static_cast<double>(n) + 1e-6) *
                               value(weight.view(), i) * gate / (1.0 + std::exp(-gate)));
          }
        }
        expect_close(y.view(), expected, 10 * fp32_error());
      }
    }
  }
}

TEST_P(GatedNormTest, ARowDoesNotSeeItsNeighbours) {
  Random random(10);
  const Tensor weight = random_tensor(DType::kF32, {128}, random);
  const Tensor o = random_tensor(DType::kF32, {17, 3, 128}, random);
  const Tensor z = random_tensor(DType::kF32, {17, 3, 128}, random);
  Tensor together(activation(), {17, 3, 128});
  ops().gated_norm({.o = o.view(), .z = z.view(), .weight = weight.as<float>(), .eps = 1e-6f, .y = together.view()});
  for (int64_t r = 0; r < 17; ++r) {
    Tensor alone(activation(), {1, 3, 128});
    ops().gated_norm({.o = o.view().slice(r, 1), .z = z.view().slice(r, 1), .weight = weight.as<float>(), .eps = 1e-6f, .y = alone.view()});
    ASSERT_TRUE(bytes_equal(alone.view(), together.view().slice(r, 1))) << "row " << r;
  }
}

ESPALIER_ON_ALL_BACKENDS(GatedNormTest);

}  // namespace
}  // namespace espalier::testing
