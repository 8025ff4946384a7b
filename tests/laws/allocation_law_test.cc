// A pass allocates nothing once the first ones have sized its buffers: prefill chunk, decode step, tree and commit.
#include "tests/laws/law_model.h"
#include "tests/support/allocation_counter.h"

namespace espalier::testing {
namespace {

class AllocationLaw : public ModelLaw {
 protected:
  // One round of everything a running engine does with the model.
  void round() {
    harness_->feed(0, chunk_);
    harness_->feed(1, {chunk_.data(), 1});
    harness_->judge(0, tree_, parents_);
    harness_->accept(0, path_);
  }
  Random random_{1};
  const std::vector<TokenId> chunk_ = random_tokens(random_, 30);
  const std::vector<TokenId> tree_ = random_tokens(random_, 12);
  const std::vector<int32_t> parents_ = random_tree(12, random_);
  const std::vector<int32_t> path_ = path_to(parents_, 11);
};

TEST_P(AllocationLaw, APassAllocatesNothing) {
  if (std::get<1>(GetParam()).name == "reference") GTEST_SKIP() << "the reference backend may allocate scratch";
  round();
  const int64_t before = num_allocations();
  round();
  EXPECT_EQ(num_allocations() - before, 0);
  round();
  EXPECT_EQ(num_allocations() - before, 0);
}

TEST(AllocationCounter, SeesAnAllocation) {
  const int64_t before = num_allocations();
  std::vector<int> values(100);
  EXPECT_GT(num_allocations(), before);
  EXPECT_EQ(values.size(), 100u);
}

ESPALIER_ON_ALL_LAW_MODELS(AllocationLaw);

}  // namespace
}  // namespace espalier::testing
