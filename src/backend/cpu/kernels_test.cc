// The functions inside the kernel tables that no op shows by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/float_mode.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/packed_weight.h"
#include "backend/op_test_support.h"

namespace espalier::cpu {
namespace {

using testing::Random;

class KernelsTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
  const ScopedFloatMode mode_;
};

using ArrayFn = void (*)(const float* x, int64_t n, float* y);

// Largest error in units of the last place of the exact value, over an even sweep of [low, high].
double worst_ulp(ArrayFn fn, double (*exact)(double), float low, float high) {
  constexpr int64_t kPoints = 200'001;
  std::vector<float> x(kPoints), y(kPoints);
  for (int64_t i = 0; i < kPoints; ++i)
    x[static_cast<size_t>(i)] = low + (high - low) * static_cast<float>(i) / static_cast<float>(kPoints - 1);
  fn(x.data(), kPoints, y.data());
  double worst = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = exact(static_cast<double>(x[i]));
    const double ulp = std::ldexp(1.0, std::max(-126, std::ilogb(expected)) - 23);
    worst = std::max(worst, std::abs(static_cast<double>(y[i]) - expected) / ulp);
  }
  return worst;
}

double exact_sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double exact_silu(double x) { return x / (1.0 + std::exp(-x)); }
double exact_softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

TEST_P(KernelsTest, ExpIsWithinTwoUlp) {
  EXPECT_LT(worst_ulp(table().exp, std::exp, -87.3f, 88.7f), 2.0);
  EXPECT_LT(worst_ulp(table().exp, std::exp, -1.0f, 1.0f), 2.0);
  EXPECT_LT(worst_ulp(table().exp, std::exp, -1e-6f, 1e-6f), 1.0);
}

TEST_P(KernelsTest, ExpAtTheEdges) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float x[] = {0.0f, -0.0f, -infinity, infinity, 89.0f, -104.0f, -1e30f, 1e30f, std::nanf("")};
  float y[9];
  table().exp(x, 9, y);
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 1.0f);
  for (const int i : {2, 5, 6}) EXPECT_EQ(y[i], 0.0f) << x[i];
  for (const int i : {3, 4, 7}) EXPECT_EQ(y[i], infinity) << x[i];
  EXPECT_TRUE(std::isnan(y[8]));
}

TEST_P(KernelsTest, SigmoidSiluAndSoftplusAreWithinFourUlp) {
  EXPECT_LT(worst_ulp(table().sigmoid, exact_sigmoid, -80.0f, 80.0f), 4.0);
  EXPECT_LT(worst_ulp(table().silu, exact_silu, -80.0f, 80.0f), 4.0);
  EXPECT_LT(worst_ulp(table().softplus, exact_softplus, -80.0f, 80.0f), 4.0);
  EXPECT_LT(worst_ulp(table().softplus, exact_softplus, -2.0f, 2.0f), 4.0);
}

// Every length and offset: a lane of a tail must not differ from the same lane in a full vector, nor write beside its array.
TEST_P(KernelsTest, TailsComputeWhatFullVectorsDo) {
  Random random(1);
  std::vector<float> x(64), whole(64);
  for (float& value : x) value = random.uniform(-20.0f, 20.0f);
  table().silu(x.data(), 64, whole.data());
  std::vector<uint16_t> whole_product(64);
  table().silu_mul(x.data(), x.data(), 64, whole_product.data());
  for (int64_t begin = 0; begin < 20; ++begin) {
    for (int64_t n = 0; n <= 40; ++n) {
      std::vector<float> y(64, 7.0f);
      std::vector<uint16_t> product(64, 7);
      table().silu(x.data() + begin, n, y.data() + begin);
      table().silu_mul(x.data() + begin, x.data() + begin, n, product.data() + begin);
      for (int64_t i = 0; i < 64; ++i) {
        const bool inside = i >= begin && i < begin + n;
        const auto at = static_cast<size_t>(i);
        ASSERT_EQ(y[at], inside ? whole[at] : 7.0f) << begin << " + " << n << ", element " << i;
        ASSERT_EQ(product[at], inside ? whole_product[at] : 7) << begin << " + " << n << ", element " << i;
      }
    }
  }
}

TEST_P(KernelsTest, RoundsToBf16AsTheCodecDoes) {
  std::vector<float> x = {
      0.0f, -0.0f, 1.0f, -1.0f, 3.4e38f, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()};
  for (uint32_t upper : {0x3F80u, 0x3F81u, 0xC123u, 0x7F7Fu, 0x0080u}) {
    for (uint32_t lower : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) x.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  std::vector<uint16_t> y(x.size());
  table().round_to_bf16(x.data(), static_cast<int64_t>(x.size()), y.data());
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], f32_to_bf16(x[i])) << x[i];
  const float nan = std::nanf("");
  table().round_to_bf16(&nan, 1, y.data());
  EXPECT_TRUE(std::isnan(bf16_to_f32(y[0])));
}

// The recipes differ, the sums may not differ by more than FP32 rounding of K terms.
TEST_P(KernelsTest, GemmAgreesWithTheOtherTables) {
  Random random(2);
  constexpr int64_t kRows = 13, kN = 70, kK = 320;
  const Tensor w = testing::random_tensor(DType::kBf16, {kN, kK}, random), x = testing::random_tensor(DType::kBf16, {kRows, kK}, random);
  ThreadPool pool(1);
  const PackedWeight packed(w.view(), pool);
  const auto product = [&](const KernelTable& t) {
    std::vector<std::byte> a(kRows * kK * t.operand_bytes);
    t.pack_rows(x.as<uint16_t>(), kK, kRows, kK, kK, a.data());
    std::vector<float> y(kRows * kN);
    t.gemm({.a = a.data(),
            .a_stride = kK,
            .rows = kRows,
            .b = packed.panel(0),
            .panel_stride = PackedWeight::panel_elements(kK),
            .n = kN,
            .k = kK,
            .c = y.data(),
            .c_stride = kN,
            .store = GemmStore::kAssign});
    return y;
  };
  const std::vector<float> mine = product(table());
  for (const KernelTable* other : available_tables()) {
    const std::vector<float> theirs = product(*other);
    for (size_t i = 0; i < mine.size(); ++i) ASSERT_NEAR(mine[i], theirs[i], 2e-5) << other->name << ", element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, KernelsTest, ::testing::ValuesIn(available_tables()), [](const auto& tested) {
  std::string name = tested.param->name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace espalier::cpu
