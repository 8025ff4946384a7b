#include "backend/cpu/attention_plan.h"

#include <gmock/gmock.h>

#include "backend/batch_test_support.h"

namespace espalier::cpu {
namespace {

using testing::chain;
using ::testing::ElementsAre;
using testing::TestBatch;

std::vector<int32_t> rows_of(const AttentionPlan& plan, int32_t path) {
  std::vector<int32_t> rows;
  for (const AttentionPlan::Entry& entry : plan.entries()) {
    if (entry.path == path) rows.push_back(entry.row);
  }
  return rows;
}

TEST(AttentionPlan, AChainIsOnePathInPlaceCutIntoBlocks) {
  const TestBatch batch({{.parents = chain(3), .base = 7}, {.parents = chain(5), .base = 100}});
  AttentionPlan plan;
  plan.build(batch.view(), 2);
  ASSERT_EQ(plan.paths().size(), 2u);
  EXPECT_TRUE(plan.paths()[0].in_place);
  EXPECT_THAT(rows_of(plan, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(rows_of(plan, 1), ElementsAre(3, 4, 5, 6, 7));
  ASSERT_EQ(plan.blocks().size(), 5u);  // 2 + 1 and 2 + 2 + 1 rows
  EXPECT_EQ(plan.blocks()[0].last_position, 8);
  EXPECT_EQ(plan.blocks()[4].sequence, 1);
  EXPECT_EQ(plan.blocks()[4].last_position, 104);
}

//      0
//     / \        rows in the order they were drafted
//    1   2
//    |   |
//    3   4
TEST(AttentionPlan, EveryRowOfATreeIsOnOnePathToALeaf) {
  const TestBatch batch({{.parents = {-1, 0, 0, 1, 2}, .base = 10, .keep = Keep::kNone}});
  AttentionPlan plan;
  plan.build(batch.view(), 64);
  ASSERT_EQ(plan.paths().size(), 2u);
  EXPECT_EQ(plan.paths()[0].leaf, 4);
  EXPECT_THAT(rows_of(plan, 0), ElementsAre(0, 2, 4));
  EXPECT_THAT(rows_of(plan, 1), ElementsAre(1, 3));
  EXPECT_FALSE(plan.paths()[0].in_place);  // row 2 has position 11 and slot 12
  ASSERT_EQ(plan.blocks().size(), 1u);
  EXPECT_EQ(plan.blocks()[0].last_position, 12);
}

TEST(AttentionPlan, ALinearDraftIsInPlace) {
  const TestBatch batch({{.parents = chain(6), .base = 10, .keep = Keep::kNone}});
  AttentionPlan plan;
  plan.build(batch.view(), 64);
  ASSERT_EQ(plan.paths().size(), 1u);
  EXPECT_TRUE(plan.paths()[0].in_place);
}

}  // namespace
}  // namespace espalier::cpu
