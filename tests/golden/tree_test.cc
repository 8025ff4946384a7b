// Token trees against another implementation that ran every root-to-node path as a plain sequence.
#include "tests/golden/golden_model.h"

namespace espalier::testing {
namespace {

struct GoldenTree {
  std::string name;  // with the dot that the names of its tensors go on with
  std::vector<TokenId> prefix;
  std::vector<TokenId> tokens;
  std::vector<int32_t> parents;

  std::vector<int32_t> path_to(int32_t node) const {
    std::vector<int32_t> path;
    for (; node >= 0; node = parents[static_cast<size_t>(node)]) path.insert(path.begin(), node);
    return path;
  }
};

class TreeGolden : public GoldenModelTest {
 protected:
  void SetUp() override {
    GoldenModelTest::SetUp();
    if (IsSkipped()) return;
    golden_.emplace(shared_path("oracle/" + GetParam().model + "/golden/tree.safetensors"));
    const Json cases = manifest("tree")["cases"];
    for (const Json& entry : cases) {
      const std::string name = entry["name"].get<std::string>() + ".";
      trees_.push_back({name, trunk_->ints(entry["prefix"].get<std::string>() + ".tokens"), golden_->ints(name + "tokens"),
                        golden_->ints(name + "parents")});
    }
    ASSERT_FALSE(trees_.empty());
  }

  ConstTensorView judge(const GoldenTree& tree, HiddenObserver* observer = nullptr) {
    harness_->reset();
    harness_->feed(0, tree.prefix);
    return harness_->judge(0, tree.tokens, tree.parents, observer);
  }

  std::optional<GoldenFile> golden_;
  std::vector<GoldenTree> trees_;
};

TEST_P(TreeGolden, EveryNodeIsItsPath) {
  HiddenRecorder hidden;
  for (const GoldenTree& tree : trees_) {
    hidden.clear();
    const ConstTensorView logits = judge(tree, &hidden);
    expect_within({logits.as<float>(), static_cast<size_t>(logits.shape.num_elements())}, golden_->floats(tree.name + "logits"),
                  allowances_.logits, tree.name + "logits");
    expect_within(hidden[harness_->config().num_layers + 1].span<float>(), golden_->floats(tree.name + "final"), allowances_.final,
                  tree.name + "final");
    const std::vector<int32_t> argmax = golden_->ints(tree.name + "argmax");
    const auto margins = golden_->floats(tree.name + "margin");
    for (size_t node = 0; node < argmax.size(); ++node) {
      if (margins[node] <= allowances_.margin) continue;
      EXPECT_EQ(choose(logits, static_cast<int64_t>(node)).token, argmax[node]) << tree.name << " node " << node;
    }
  }
}

TEST_P(TreeGolden, EveryNodeHasItsKeysAndValues) {
  for (const GoldenTree& tree : trees_) {
    judge(tree);
    std::vector<float> keys, values;  // [nodes, full-attention layers, kv heads, head_dim]
    for (int32_t node = 0; node < static_cast<int32_t>(tree.tokens.size()); ++node) {
      const int32_t slot = static_cast<int32_t>(tree.prefix.size()) + node;
      for (int32_t layer = 0; layer < harness_->config().num_full_layers(); ++layer) {
        const std::vector<float> key = stored(KvPart::kKey, layer, slot, 1), value = stored(KvPart::kValue, layer, slot, 1);
        keys.insert(keys.end(), key.begin(), key.end());
        values.insert(values.end(), value.begin(), value.end());
      }
    }
    expect_within(keys, golden_->floats(tree.name + "k"), allowances_.kv, tree.name + "k");
    expect_within(values, golden_->floats(tree.name + "v"), allowances_.kv, tree.name + "v");
  }
}

TEST_P(TreeGolden, AcceptingAPathGivesTheStateAfterIt) {
  for (const GoldenTree& tree : trees_) {
    judge(tree);
    const ModelHarness::Memory judged = harness_->save();
    for (const std::string probe : {"probe_k", "probe_v"}) {
      if (!golden_->has(tree.name + "S_" + probe)) continue;
      const auto golden = golden_->floats(tree.name + "S_" + probe);
      const size_t node_size = golden.size() / tree.tokens.size();
      for (size_t node = 0; node < tree.tokens.size(); ++node) {
        harness_->restore(judged);
        harness_->accept(0, tree.path_to(static_cast<int32_t>(node)));
        expect_within(recurrent_probe(0, probe), golden.subspan(node * node_size, node_size), allowances_.recurrent,
                      format("{}S_{} after node {}", tree.name, probe, node));
      }
    }
  }
}

TEST_P(TreeGolden, TheGreedyWalkIsAcceptedAndLeavesItsInputs) {
  for (const GoldenTree& tree : trees_) {
    const ConstTensorView logits = judge(tree);
    std::vector<int32_t> path = {0};
    int32_t next = choose(logits, 0).token;
    for (int32_t child = 1; child < static_cast<int32_t>(tree.tokens.size()); ++child) {
      if (tree.parents[static_cast<size_t>(child)] != path.back() || tree.tokens[static_cast<size_t>(child)] != next) continue;
      path.push_back(child);
      next = choose(logits, child).token;
    }
    std::vector<int32_t> accepted = golden_->ints(tree.name + "accepted");
    accepted.insert(accepted.begin(), 0);
    const auto margins = golden_->floats(tree.name + "margin");
    if (std::all_of(accepted.begin(), accepted.end(),
                    [&](int32_t node) { return margins[static_cast<size_t>(node)] > allowances_.margin; })) {
      EXPECT_EQ(path, accepted) << tree.name;
      EXPECT_EQ(next, golden_->ints(tree.name + "next")[0]) << tree.name;
    }
    harness_->accept(0, accepted);
    expect_within(kept_inputs(0), golden_->floats(tree.name + "commit_conv"), allowances_.conv, tree.name + "commit_conv");
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, TreeGolden, ::testing::ValuesIn(golden_cases()), golden_case_name);

}  // namespace
}  // namespace espalier::testing
