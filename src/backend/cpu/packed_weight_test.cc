#include "backend/cpu/packed_weight.h"

#include <gtest/gtest.h>

#include "backend/op_test_support.h"

namespace espalier::cpu {
namespace {

using testing::Random;

TEST(PackedWeight, ElementsLieInPanelsOfPairsAndPaddingIsZero) {
  ThreadPool pool(2);
  Random random(1);
  for (const int64_t n : {1, 16, 17, 40}) {
    for (const int64_t k : {1, 2, 31, 32, 33, 300}) {
      const Tensor w = testing::random_tensor(DType::kBf16, {n, k}, random, 0.5f, 1.0f);
      const PackedWeight packed(w.view(), pool);
      const int64_t padded_k = (k + 31) / 32 * 32, panels = (n + 15) / 16;
      ASSERT_EQ(packed.size_bytes(), static_cast<size_t>(panels * 16 * padded_k * 2));
      for (int64_t i = 0; i < panels * 16; ++i) {
        for (int64_t j = 0; j < padded_k; ++j) {
          const uint16_t expected = i < n && j < k ? w.as<uint16_t>()[i * k + j] : 0;
          ASSERT_EQ(packed.panel(i / 16)[j / 2 * 32 + i % 16 * 2 + j % 2], expected)
              << "row " << i << ", k " << j << " of " << n << " x " << k;
        }
      }
    }
  }
}

TEST(PackedWeight, WiderSourcesAreRoundedToNearestEven) {
  ThreadPool pool(1);
  Tensor w(DType::kF32, {1, 3});
  w.as<float>()[0] = 1.00390625f;  // halfway between 1 and 1.0078125: to even
  w.as<float>()[1] = 1.01171875f;  // halfway between 1.0078125 and 1.015625: to even, up
  w.as<float>()[2] = -1.0039064f;
  const PackedWeight packed(w.view(), pool);
  EXPECT_EQ(bf16_to_f32(packed.panel(0)[0]), 1.0f);
  EXPECT_EQ(bf16_to_f32(packed.panel(0)[1]), 1.015625f);
  EXPECT_EQ(bf16_to_f32(packed.panel(0)[32]), -1.0078125f);
}

}  // namespace
}  // namespace espalier::cpu
