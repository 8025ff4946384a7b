#include "engine/step_budget.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(StepBudget, StartsSmallAndGrowsToTheMeasuredCost) {
  StepBudget budget(300, 512);
  EXPECT_EQ(budget.prompt_rows(0), 64);
  budget.observe(64, 64.0);  // 1 ms a row
  EXPECT_EQ(budget.prompt_rows(0), 300);
  for (int i = 0; i < 20; ++i) budget.observe(300, 30.0);  // 0.1 ms a row
  EXPECT_EQ(budget.prompt_rows(0), 512);
  EXPECT_EQ(budget.prompt_rows(12), 500);
}

TEST(StepBudget, ADearModelStillGetsOneRow) {
  StepBudget budget(300, 512);
  budget.observe(64, 64 * 1000.0);
  EXPECT_EQ(budget.prompt_rows(0), 1);
  budget.observe(1, 900.0);
  EXPECT_EQ(budget.prompt_rows(4), 1);
}

TEST(StepBudget, DecodingIsPaidFirst) {
  StepBudget budget(300, 512);
  budget.observe(100, 100.0);
  budget.observe(4, 100.0);
  EXPECT_EQ(budget.prompt_rows(4), 200);
  EXPECT_EQ(budget.prompt_rows(512), 0);
}

TEST(StepBudget, RecoversFromASlowStep) {
  StepBudget budget(300, 512);
  budget.observe(64, 64 * 1000.0);
  EXPECT_EQ(budget.prompt_rows(0), 1);
  for (int i = 0; i < 40; ++i) budget.observe(budget.prompt_rows(0), 1.0 * budget.prompt_rows(0));
  EXPECT_GE(budget.prompt_rows(0), 250);
}

}  // namespace
}  // namespace espalier
