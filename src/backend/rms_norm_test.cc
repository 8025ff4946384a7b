#include "ops/rms_norm.h"

#include "backend/op_test_support.h"

namespace espalier::testing {
namespace {

using RmsNormTest = OpTest;

std::vector<double> zero_centred_norm(const ConstTensorView& x, const std::vector<float>& weight, double eps) {
  const int64_t n = x.shape[1];
  std::vector<double> y;
  for (int64_t r = 0; r < x.rows(); ++r) {
    double squares = 0.0;
    for (int64_t i = 0; i < n; ++i) squares += value(x, r * n + i) * value(x, r * n + i);
    for (int64_t i = 0; i < n; ++i)
      y.push_back(value(x, r * n + i) / std::sqrt(squares / static_cast<double>(n) + eps) * (1.0 + weight[static_cast<size_t>(i)]));
  }
  return y;
}

TEST_P(RmsNormTest, IsTheZeroCentredNorm) {
  Random random(3);
  for (const int64_t n : {1, 15, 64, 100, 128, 257, 1024}) {
    for (const float size : {1.0f, 1e-4f, 300.0f}) {  // 1e-4: eps counts
      std::vector<float> weight(static_cast<size_t>(n));
      for (float& w : weight) w = random.uniform();
      for (const int64_t rows : kRowCounts) {
        const Tensor x = random_tensor(DType::kF32, {rows, n}, random, -size, size);
        Tensor y(activation(), {rows, n});
        ops().rms_norm({.x = x.view(), .weight = weight.data(), .eps = 1e-6f, .y = y.view()});
        expect_close(y.view(), zero_centred_norm(x.view(), weight, 1e-6), 4 * fp32_error());
      }
    }
  }
}

TEST_P(RmsNormTest, ARowDoesNotSeeItsNeighbours) {
  Random random(4);
  constexpr int64_t kN = 200;
  const Tensor x = random_tensor(DType::kF32, {33, kN}, random);
  const Tensor weight = random_tensor(DType::kF32, {kN}, random);
  Tensor together(activation(), {33, kN});
  ops().rms_norm({.x = x.view(), .weight = weight.as<float>(), .eps = 1e-6f, .y = together.view()});
  for (int64_t r = 0; r < 33; ++r) {
    Tensor alone(activation(), {1, kN});
    ops().rms_norm({.x = x.view().slice(r, 1), .weight = weight.as<float>(), .eps = 1e-6f, .y = alone.view()});
    ASSERT_TRUE(bytes_equal(alone.view(), together.view().slice(r, 1))) << "row " << r;
  }
}

TEST_P(RmsNormTest, ARowOfZerosStaysZero) {
  const Tensor x(DType::kF32, {1, 64});
  const std::vector<float> weight(64, 0.5f);
  Tensor y(activation(), {1, 64});
  ops().rms_norm({.x = x.view(), .weight = weight.data(), .eps = 1e-6f, .y = y.view()});
  for (int64_t i = 0; i < 64; ++i) ASSERT_EQ(value(y.view(), i), 0.0);
}

ESPALIER_ON_ALL_BACKENDS(RmsNormTest);

}  // namespace
}  // namespace espalier::testing
