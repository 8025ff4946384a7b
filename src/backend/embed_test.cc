#include "ops/embed.h"

#include "backend/batch_test_support.h"

namespace espalier::testing {
namespace {

using EmbedTest = OpTest;

TEST_P(EmbedTest, WidensTheRowOfEachToken) {
  Random random(1);
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    for (const int64_t hidden : {1, 31, 64, 257}) {
      const Tensor table = random_tensor(dtype, {50, hidden}, random);
      for (const int64_t rows : kRowCounts) {
        TestBatch batch({{.parents = chain(static_cast<int32_t>(rows))}});
        for (int32_t& token : batch.tokens()) token = random.below(50);
        Tensor y(DType::kF32, {rows, hidden});
        ops().embed({.batch = &batch.view(), .table = table.view(), .y = y.view()});
        for (int64_t i = 0; i < rows * hidden; ++i) {
          ASSERT_EQ(y.span<float>()[static_cast<size_t>(i)],
                    value(table.view(), batch.tokens()[static_cast<size_t>(i / hidden)] * hidden + i % hidden));
        }
      }
    }
  }
}

TEST_P(EmbedTest, RowsWithoutATokenTakeTheirEmbedding) {
  Random random(2);
  const Tensor table = random_tensor(DType::kBf16, {4, 40}, random);
  const Tensor given = random_tensor(DType::kF32, {3, 40}, random);
  TestBatch batch({{.parents = chain(3)}});
  batch.tokens() = {2, -1, 3};
  BatchView view = batch.view();
  view.embedding = given.as<float>();
  Tensor y(DType::kF32, {3, 40});
  ops().embed({.batch = &view, .table = table.view(), .y = y.view()});
  for (int64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(value(y.view(), i), value(table.view(), 2 * 40 + i));
    EXPECT_EQ(value(y.view(), 40 + i), value(given.view(), 40 + i));
    EXPECT_EQ(value(y.view(), 80 + i), value(table.view(), 3 * 40 + i));
  }
}

ESPALIER_ON_ALL_BACKENDS(EmbedTest);

}  // namespace
}  // namespace espalier::testing
