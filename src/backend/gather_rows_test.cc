#include "ops/gather_rows.h"

#include "backend/op_test_support.h"

namespace espalier::testing {
namespace {

using GatherRowsTest = OpTest;

TEST_P(GatherRowsTest, CopiesTheChosenRowsInOrder) {
  Random random(13);
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const int64_t n : {1, 33, 128}) {
      const Tensor x = random_tensor(dtype, {20, n}, random);
      const std::vector<int32_t> rows = {19, 0, 0, 7, 3};
      Tensor y(dtype, {6, n});
      ops().gather_rows({.x = x.view(), .rows = rows.data(), .num_rows = 5, .y = y.view()});
      for (int64_t i = 0; i < 5; ++i) EXPECT_TRUE(bytes_equal(y.view().slice(i, 1), x.view().slice(rows[static_cast<size_t>(i)], 1)));
      for (int64_t i = 0; i < n; ++i) EXPECT_EQ(value(y.view(), 5 * n + i), 0.0) << "a row beyond num_rows was written";
    }
  }
}

ESPALIER_ON_ALL_BACKENDS(GatherRowsTest);

}  // namespace
}  // namespace espalier::testing
