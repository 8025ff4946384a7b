// The summation recipe of the amx table: the twin against the documented steps in scalar code on every machine with AVX-512, the AMX unit
// against its twin where there is one. Byte for byte.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "backend/cpu/float_mode.h"
#include "backend/cpu/packed_weight.h"
#include "backend/op_test_support.h"
#include "base/cpu_features.h"

#if defined(__x86_64__)

namespace espalier::cpu {
namespace {

using testing::Random;

struct Problem {
  Problem(int64_t num_rows, int64_t num_outputs, int64_t depth, uint32_t seed)
      : rows(num_rows), n(num_outputs), k(depth), random(seed), x(DType::kBf16, {rows, k}), w(DType::kBf16, {n, k}) {
    // Magnitudes over 24 binary orders: the order of a sum shows in its last bits.
    for (Tensor* tensor : {&x, &w}) {
      for (uint16_t& bits : tensor->span<uint16_t>()) bits = f32_to_bf16(std::ldexp(random.uniform(), random.below(24) - 12));
    }
  }

  std::vector<float> product(const KernelTable& table, GemmStore store = GemmStore::kAssign) {
    const ScopedFloatMode mode;
    ThreadPool pool(1);
    const PackedWeight packed(w.view(), pool);
    std::vector<float> y(static_cast<size_t>(rows * n), 0.5f);
    table.gemm({.a = x.as<uint16_t>(),
                .a_stride = k,
                .rows = rows,
                .b = packed.panel(0),
                .panel_stride = PackedWeight::panel_elements(k),
                .n = n,
                .k = k,
                .c = y.data(),
                .c_stride = n,
                .store = store});
    return y;
  }

  int64_t rows, n, k;
  Random random;
  Tensor x, w;
};

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class AmxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_features().avx512) GTEST_SKIP() << "the amx tables need AVX-512";
  }
};

TEST_F(AmxTest, TwinFollowsTheStepsOfTheInstruction) {
  for (const int64_t rows : {1, 5, 16, 17, 32, 33, 50}) {
    Problem problem(rows, 53, 96, static_cast<uint32_t>(rows));
    std::vector<float> expected;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < problem.n; ++j) {
        float acc = 0.0f;
        for (int64_t block = 0; block < problem.k; block += 32) {
          float sums[2] = {0.0f, 0.0f};
          for (int64_t i = 0; i < 32; ++i) {
            const float a = bf16_to_f32(problem.x.as<uint16_t>()[r * problem.k + block + i]),
                        b = bf16_to_f32(problem.w.as<uint16_t>()[j * problem.k + block + i]);
            sums[i % 2] = std::fma(a, b, sums[i % 2]);
          }
          acc += sums[0] + sums[1];
        }
        expected.push_back(acc);
      }
    }
    EXPECT_TRUE(same_bytes(problem.product(amx_twin_table()), expected)) << rows << " rows";
    for (float& value : expected) value = 0.5f + value;
    EXPECT_TRUE(same_bytes(problem.product(amx_twin_table(), GemmStore::kAdd), expected)) << rows << " rows, added";
  }
}

TEST_F(AmxTest, HardwareEqualsItsTwin) {
  if (!cpu_features().amx_bf16) GTEST_SKIP() << "no AMX on this processor";
  for (int64_t rows = 1; rows <= 70; ++rows) {
    for (const int64_t n : {1, 16, 40, 64}) {
      Problem problem(rows, n, 160, static_cast<uint32_t>(rows * 100 + n));
      EXPECT_TRUE(same_bytes(problem.product(amx_table()), problem.product(amx_twin_table()))) << rows << " rows, n " << n;
    }
  }
}

}  // namespace
}  // namespace espalier::cpu

#endif
