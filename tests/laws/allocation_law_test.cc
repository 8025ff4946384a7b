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

// The reference backend's ops may take scratch.
std::vector<BackendCase> backends_without_scratch() {
  std::vector<BackendCase> backends = test_backends();
  std::erase_if(backends, [](const BackendCase& backend) { return backend.name == "reference"; });
  return backends;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AllocationLaw);
INSTANTIATE_TEST_SUITE_P(Models, AllocationLaw,
                         ::testing::Combine(::testing::ValuesIn(law_shapes()), ::testing::ValuesIn(backends_without_scratch()),
                                            ::testing::Values(64)),
                         model_law_name);

}  // namespace
}  // namespace espalier::testing
