#include "cache/token_tree.h"

#include <gtest/gtest.h>

#include "cache/cache_test_support.h"

namespace espalier {
namespace {

TEST(TokenTree, CommonPrefixesAreStoredOnce) {
  TokenTree tree;
  std::vector<Snapshot> snapshots(3);
  tree.insert(Tokens{1, 2, 3, 4}).snapshot = &snapshots[0];
  tree.insert(Tokens{1, 2, 5}).snapshot = &snapshots[1];
  tree.insert(Tokens{1, 2, 3}).snapshot = &snapshots[2];
  EXPECT_EQ(tree.num_tokens(), 5u);  // 1 2 | 3 | 4 | 5
  EXPECT_EQ(tree.nodes().size(), 4u);
  EXPECT_EQ(TokenTree::tokens(tree.insert(Tokens{1, 2, 3, 4})), (Tokens{1, 2, 3, 4}));
}

TEST(TokenTree, WalkSaysHowFarTheTextIsKnownAndWhetherItGoesOn) {
  TokenTree tree;
  Snapshot snapshot;
  tree.insert(Tokens{1, 2, 3}).snapshot = &snapshot;
  EXPECT_EQ(tree.walk(Tokens{1, 2, 9}).num_known, 2u);
  EXPECT_TRUE(tree.walk(Tokens{1, 2, 9}).goes_on);
  EXPECT_TRUE(tree.walk(Tokens{1, 2, 9}).nodes.empty());
  EXPECT_EQ(tree.walk(Tokens{1, 2, 3, 9}).num_known, 3u);
  EXPECT_FALSE(tree.walk(Tokens{1, 2, 3, 9}).goes_on);
  EXPECT_EQ(tree.walk(Tokens{9}).num_known, 0u);
  EXPECT_EQ(tree.walk(Tokens{}).num_known, 0u);
}

TEST(TokenTree, PruningMergesRunsAndEmptiesTheTree) {
  TokenTree tree;
  Snapshot a;
  Snapshot b;
  TokenNode& left = tree.insert(Tokens{1, 2, 3});
  left.snapshot = &a;
  TokenNode& right = tree.insert(Tokens{1, 2, 4, 5});
  right.snapshot = &b;
  EXPECT_EQ(tree.nodes().size(), 3u);
  left.snapshot = nullptr;
  tree.prune(left);
  EXPECT_EQ(tree.nodes().size(), 1u);
  EXPECT_EQ(tree.num_tokens(), 4u);
  EXPECT_EQ(TokenTree::tokens(right), (Tokens{1, 2, 4, 5}));
  right.snapshot = nullptr;
  tree.prune(right);
  EXPECT_TRUE(tree.nodes().empty());
  EXPECT_EQ(tree.num_tokens(), 0u);
}

TEST(TokenTree, PathOfAHundredThousandNodesIsFreedWithoutRecursion) {
  Snapshot snapshot;
  TokenTree tree;
  TokenNode* node = &tree.insert(Tokens{0});
  node->snapshot = &snapshot;
  for (size_t depth = 2; depth <= 100000; ++depth) {  // as a conversation of as many turns would leave it
    auto child = std::make_unique<TokenNode>();
    child->run = {0};
    child->depth = depth;
    child->parent = node;
    child->snapshot = &snapshot;
    TokenNode* next = child.get();
    node->children.emplace(0, std::move(child));
    node = next;
  }
  EXPECT_EQ(tree.nodes().size(), 100000u);
}

}  // namespace
}  // namespace espalier
