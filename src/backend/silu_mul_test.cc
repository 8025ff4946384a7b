#include "ops/silu_mul.h"

#include "backend/op_test_support.h"

namespace espalier::testing {
namespace {

using SiluMulTest = OpTest;

TEST_P(SiluMulTest, GatesTheUpProjection) {
  Random random(11);
  for (const int64_t n : {1, 15, 64, 100, 384}) {
    for (const int64_t rows : kRowCounts) {
      const Tensor gate = random_tensor(DType::kF32, {rows, n}, random, -20.0f, 20.0f);
      const Tensor up = random_tensor(DType::kF32, {rows, n}, random, -3.0f, 3.0f);
      Tensor y(activation(), {rows, n});
      ops().silu_mul({.gate = gate.view(), .up = up.view(), .y = y.view()});
      std::vector<double> expected;
      for (int64_t i = 0; i < rows * n; ++i)
        expected.push_back(value(gate.view(), i) / (1.0 + std::exp(-value(gate.view(), i))) * value(up.view(), i));
      expect_close(y.view(), expected, 10 * fp32_error());
    }
  }
}

TEST_P(SiluMulTest, FarFromZeroTheGateIsOpenOrShut) {
  const std::vector<float> gate = {-1e30f, -200.0f, -0.0f, 0.0f, 200.0f, 1e4f};
  const std::vector<float> up(6, 2.0f);
  Tensor y(activation(), {1, 6});
  ops().silu_mul({.gate = {gate.data(), DType::kF32, {1, 6}}, .up = {up.data(), DType::kF32, {1, 6}}, .y = y.view()});
  expect_close(y.view(), {0.0, 0.0, 0.0, 0.0, 400.0, 2e4}, 1e-3);
}

TEST_P(SiluMulTest, ARowDoesNotSeeItsNeighbours) {
  Random random(12);
  const Tensor gate = random_tensor(DType::kF32, {17, 100}, random, -8.0f, 8.0f);
  const Tensor up = random_tensor(DType::kF32, {17, 100}, random);
  Tensor together(activation(), {17, 100});
  ops().silu_mul({.gate = gate.view(), .up = up.view(), .y = together.view()});
  for (int64_t r = 0; r < 17; ++r) {
    Tensor alone(activation(), {1, 100});
    ops().silu_mul({.gate = gate.view().slice(r, 1), .up = up.view().slice(r, 1), .y = alone.view()});
    ASSERT_TRUE(bytes_equal(alone.view(), together.view().slice(r, 1))) << "row " << r;
  }
}

ESPALIER_ON_ALL_BACKENDS(SiluMulTest);

}  // namespace
}  // namespace espalier::testing
