// A tree node = its path decoded token by token; an accepted path = the same; law 5: a rejected branch leaves no trace.
#include "tests/laws/law_model.h"

namespace espalier::testing {
namespace {

class TreeLaw : public ModelLaw {
 protected:
  static std::vector<TokenId> tokens_on(const std::vector<int32_t>& path, const std::vector<TokenId>& tree) {
    std::vector<TokenId> tokens;
    for (const int32_t node : path) tokens.push_back(tree[static_cast<size_t>(node)]);
    return tokens;
  }
};

TEST_P(TreeLaw, ANodeIsItsPathDecoded) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int32_t num_nodes = 3 + random.below(20);
    const std::vector<TokenId> prompt = random_tokens(random, 50 + random.below(30)), tree = random_tokens(random, num_nodes);
    const std::vector<int32_t> parents = random_tree(num_nodes, random);
    harness_->reset();
    harness_->feed(0, prompt);
    const ModelHarness::Memory before = harness_->save();
    const std::vector<std::string> nodes = all_row_bytes(harness_->judge(0, tree, parents));
    EXPECT_EQ(harness_->save().state, before.state) << "judging must not touch a state";
    for (int32_t node = 0; node < num_nodes; ++node) {
      harness_->restore(before);
      ASSERT_EQ(decode(0, tokens_on(path_to(parents, node), tree)).back(), nodes[static_cast<size_t>(node)])
          << "node " << node << " of " << num_nodes;
    }
  }
}

TEST_P(TreeLaw, AnAcceptedPathIsThatPathDecodedAndTheRestLeavesNoTrace) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    harness_->reset();
    const std::vector<TokenId> prompt = random_tokens(random, 50 + random.below(30));
    harness_->feed(0, prompt);
    harness_->feed(1, prompt);
    for (int32_t round = 0; round < 4; ++round) {
      const int32_t num_nodes = 1 + random.below(16);
      const std::vector<TokenId> tree = random_tokens(random, num_nodes);
      const std::vector<int32_t> parents = random_tree(num_nodes, random);
      const std::vector<int32_t> path = path_to(parents, random.below(num_nodes));
      harness_->judge(0, tree, parents);
      harness_->accept(0, path);
      decode(1, tokens_on(path, tree));
      ASSERT_EQ(harness_->committed(0), harness_->committed(1));
      ASSERT_EQ(harness_->state_bytes(0), harness_->state_bytes(1)) << "state, boundary row and kept inputs after round " << round;
    }
    const std::vector<TokenId> next = random_tokens(random, 5);
    ASSERT_EQ(decode(0, next), decode(1, next)) << "tokens after the trees";
  }
}

TEST_P(TreeLaw, ATreeOfWhichNothingIsKeptLeavesNoTrace) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::vector<TokenId> prompt = random_tokens(random, 50 + random.below(30)), next = random_tokens(random, 20);
    harness_->reset();
    harness_->feed(0, prompt);
    const std::string state = harness_->state_bytes(0);
    harness_->judge(0, random_tokens(random, 16), random_tree(16, random));
    harness_->accept(0, {});
    EXPECT_EQ(harness_->state_bytes(0), state);
    const std::vector<std::string> after = decode(0, next);
    harness_->reset();
    harness_->feed(0, prompt);
    EXPECT_EQ(decode(0, next), after);
  }
}

TEST_P(TreeLaw, SiblingsInAnyOrderGiveTheSameRows) {
  Random random(7);
  const std::vector<TokenId> prompt = random_tokens(random, 63);
  const std::vector<TokenId> tree = random_tokens(random, 6);
  harness_->reset();
  harness_->feed(0, prompt);
  const std::vector<int32_t> parents = {-1, 0, 0, 1, 2, 2};
  const std::vector<std::string> rows = all_row_bytes(harness_->judge(0, tree, parents));
  const std::vector<int32_t> order = {0, 2, 5, 1, 4, 3};  // new place -> old node
  std::vector<TokenId> permuted = tokens_on(order, tree);
  const std::vector<std::string> permuted_rows = all_row_bytes(harness_->judge(0, permuted, std::vector<int32_t>{-1, 0, 1, 0, 1, 3}));
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(permuted_rows[i], rows[static_cast<size_t>(order[i])]) << "node " << order[i];
}

ESPALIER_ON_ALL_LAW_MODELS(TreeLaw);

}  // namespace
}  // namespace espalier::testing
