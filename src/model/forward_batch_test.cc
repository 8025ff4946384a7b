#include "model/forward_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace espalier {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> rows_of(const int32_t* data, int32_t count) { return {data, data + count}; }

TEST(ForwardBatch, AChainFollowsTheCommittedEnd) {
  const std::vector<TokenId> tokens = {11, 12, 13};
  const std::vector<int32_t> pages = {4, 9};
  const std::vector<int32_t> outputs = {2};
  ForwardBatch batch;
  EXPECT_EQ(batch.add({.tokens = tokens, .base = 62, .state_slot = 3, .page_table = pages, .output_rows = outputs}), 0);
  const BatchView& view = batch.view();
  ASSERT_EQ(view.num_rows, 3);
  EXPECT_THAT(rows_of(view.token, 3), ElementsAre(11, 12, 13));
  EXPECT_THAT(rows_of(view.parent, 3), ElementsAre(-1, 0, 1));
  EXPECT_THAT(rows_of(view.index, 3), ElementsAre(62, 63, 64));
  EXPECT_THAT(rows_of(view.kv_slot, 3), ElementsAre(62, 63, 64));
  EXPECT_THAT(rows_of(view.page_table, 2), ElementsAre(4, 9));
  EXPECT_EQ(view.sequences[0].base, 62);
  EXPECT_EQ(view.sequences[0].state_slot, 3);
  EXPECT_EQ(view.sequences[0].keep, Keep::kAll);
}

TEST(ForwardBatch, TreeNodesHaveTheDepthOfTheirPathAndASlotEach) {
  const std::vector<TokenId> tokens = {1, 2, 3, 4, 5};
  const std::vector<int32_t> parents = {-1, 0, 0, 1, 2};
  ForwardBatch batch;
  batch.add({.tokens = tokens, .parents = parents, .base = 10, .keep = Keep::kNone});
  const BatchView& view = batch.view();
  EXPECT_THAT(rows_of(view.index, 5), ElementsAre(10, 11, 11, 12, 12));
  EXPECT_THAT(rows_of(view.kv_slot, 5), ElementsAre(10, 11, 12, 13, 14));
  EXPECT_THAT(rows_of(view.rotary_position, 15), ElementsAre(10, 11, 11, 12, 12, 10, 11, 11, 12, 12, 10, 11, 11, 12, 12));
}

TEST(ForwardBatch, RowsOfASecondSequenceAreCountedFromTheBatch) {
  const std::vector<TokenId> first = {1, 2}, second = {3, 4, 5};
  const std::vector<int32_t> first_pages = {7}, second_pages = {8, 6};
  const std::vector<int32_t> first_outputs = {1}, second_outputs = {0, 2};
  const std::vector<SequenceInput::Capture> captures = {{.row = 1, .slot = 5}};
  ForwardBatch batch;
  EXPECT_EQ(batch.add({.tokens = first, .page_table = first_pages, .output_rows = first_outputs}), 0);
  EXPECT_EQ(batch.add({.tokens = second, .base = 100, .page_table = second_pages, .output_rows = second_outputs, .captures = captures}), 1);
  const BatchView& view = batch.view();
  EXPECT_EQ(view.num_sequences, 2);
  EXPECT_EQ(view.sequences[1].row_begin, 2);
  EXPECT_EQ(view.sequences[1].page_begin, 1);
  EXPECT_THAT(rows_of(view.parent, 5), ElementsAre(-1, 0, -1, 2, 3));
  EXPECT_THAT(rows_of(view.row_sequence, 5), ElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT(batch.output_rows(), ElementsAre(1, 2, 4));
  ASSERT_EQ(view.num_captures, 1);
  EXPECT_EQ(view.capture_row[0], 3);
  EXPECT_EQ(view.capture_slot[0], 5);
}

TEST(ForwardBatch, ClearForgetsEverySequence) {
  const std::vector<TokenId> tokens = {1, 2};
  const std::vector<int32_t> outputs = {0, 1};
  ForwardBatch batch;
  batch.add({.tokens = tokens, .output_rows = outputs});
  batch.clear();
  EXPECT_EQ(batch.num_rows(), 0);
  EXPECT_EQ(batch.num_outputs(), 0);
  EXPECT_EQ(batch.add({.tokens = tokens, .base = 5, .output_rows = outputs}), 0);
  EXPECT_EQ(batch.view().sequences[0].row_begin, 0);
}

TEST(ForwardBatchDeathTest, RefusesTreesThatAreNone) {
  const std::vector<TokenId> tokens = {1, 2};
  const std::vector<int32_t> forward_parent = {1, -1}, fork = {-1, -1};
  ForwardBatch batch;
  EXPECT_DEATH(batch.add({.tokens = tokens, .parents = forward_parent, .keep = Keep::kNone}), "parent < i");
  EXPECT_DEATH(batch.add({.tokens = tokens, .parents = fork, .keep = Keep::kAll}), "kNone");
  EXPECT_DEATH(batch.add({.tokens = {}}), "empty");
}

}  // namespace
}  // namespace espalier
