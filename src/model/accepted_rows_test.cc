#include "model/accepted_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/reference/reference_backend.h"
#include "model/forward_batch.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;

class AcceptedRowsTest : public ::testing::Test {
 protected:
  AcceptedRowsTest() : backend_(make_reference_backend()) {
    ModelConfig config;
    config.num_layers = 1;
    config.layer_kinds = {LayerKind::kLinearAttention};
    config.linear_num_key_heads = 1;
    config.linear_num_value_heads = 1;
    config.linear_key_head_dim = 4;
    config.linear_value_head_dim = 4;
    uncommitted_ = UncommittedInputs::allocate(*backend_, config, 16).value();
    accepted_.reserve(16);
    // Rows 0-1: a chain that is kept; rows 2-5: a tree at 10; rows 6-8: a tree at 20.
    const std::vector<TokenId> two = {1, 2}, four = {1, 2, 3, 4}, three = {1, 2, 3};
    const std::vector<int32_t> fork = {-1, 0, 0, 2}, star = {-1, 0, 0};
    batch_.add({.tokens = two, .base = 5, .state_slot = 7});
    batch_.add({.tokens = four, .parents = fork, .base = 10, .state_slot = 8, .keep = Keep::kNone});
    batch_.add({.tokens = three, .parents = star, .base = 20, .state_slot = 9, .keep = Keep::kNone});
    uncommitted_.begin_pass(batch_.view());
  }

  std::unique_ptr<Backend> backend_;
  UncommittedInputs uncommitted_;
  AcceptedRows accepted_;
  ForwardBatch batch_;
};

TEST_F(AcceptedRowsTest, OnlyRowsToBeJudgedAreUncommitted) { EXPECT_THAT(uncommitted_.rows(), ElementsAre(2, 3, 4, 5, 6, 7, 8)); }

TEST_F(AcceptedRowsTest, PathsBecomeChainsAtTheCommittedEnd) {
  const std::vector<int32_t> first = {0, 2, 3}, second = {0, 2};
  const std::vector<CommitInput> inputs = {{.sequence = 1, .path = first}, {.sequence = 2, .path = second}};
  accepted_.build(batch_.view(), inputs, uncommitted_);
  EXPECT_THAT(accepted_.pass_rows(), ElementsAre(2, 4, 5, 6, 8));
  EXPECT_THAT(accepted_.places(), ElementsAre(0, 2, 3, 4, 6));
  EXPECT_THAT(accepted_.from_slots(), ElementsAre(10, 12, 13, 20, 22));
  EXPECT_THAT(accepted_.to_slots(), ElementsAre(10, 11, 12, 20, 21));
  const BatchView& view = accepted_.view();
  ASSERT_EQ(view.num_rows, 5);
  EXPECT_THAT(std::vector<int32_t>(view.parent, view.parent + 5), ElementsAre(-1, 0, 1, -1, 3));
  EXPECT_THAT(std::vector<int32_t>(view.row_sequence, view.row_sequence + 5), ElementsAre(0, 0, 0, 1, 1));
  ASSERT_EQ(view.num_sequences, 2);
  EXPECT_EQ(view.sequences[1].row_begin, 3);
  EXPECT_EQ(view.sequences[1].num_rows, 2);
  EXPECT_EQ(view.sequences[1].state_slot, 9);
  EXPECT_EQ(view.sequences[1].keep, Keep::kAll);
  EXPECT_EQ(view.num_captures, 0);
}

TEST_F(AcceptedRowsTest, AnEmptyPathKeepsNothing) {
  const std::vector<CommitInput> inputs = {{.sequence = 1, .path = {}}};
  accepted_.build(batch_.view(), inputs, uncommitted_);
  EXPECT_EQ(accepted_.view().num_rows, 0);
  EXPECT_EQ(accepted_.view().num_sequences, 0);
}

TEST_F(AcceptedRowsTest, RefusesWhatIsNoPathOfATree) {
  const std::vector<int32_t> not_a_child = {0, 1, 3}, not_from_the_root = {2, 3}, kept = {0, 1};
  const auto build = [&](int32_t sequence, const std::vector<int32_t>& path) {
    const CommitInput input{.sequence = sequence, .path = path};
    accepted_.build(batch_.view(), {&input, 1}, uncommitted_);
  };
  EXPECT_DEATH(build(1, not_a_child), "parent");
  EXPECT_DEATH(build(1, not_from_the_root), "parent");
  EXPECT_DEATH(build(0, kept), "kNone");
}

}  // namespace
}  // namespace espalier
