// Law 3: alone = batched with others.
#include "tests/laws/law_model.h"

namespace espalier::testing {
namespace {

using BatchingLaw = ModelLaw;

TEST_P(BatchingLaw, AloneIsBatchedWithOthers) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::vector<TokenId> prompt = random_tokens(random, 70), decoding = random_tokens(random, 66), judged = random_tokens(random, 61);
    const std::vector<TokenId> chunk = random_tokens(random, 33), next = random_tokens(random, 1), tree = random_tokens(random, 12);
    const std::vector<int32_t> parents = random_tree(12, random);
    const auto prefill_all = [&] {
      harness_->reset();
      harness_->feed(0, prompt);
      harness_->feed(1, decoding);
      harness_->feed(2, judged);
    };

    prefill_all();
    std::vector<std::string> alone = all_row_bytes(harness_->feed(0, chunk));
    for (const std::string& row : all_row_bytes(harness_->feed(1, next))) alone.push_back(row);
    for (const std::string& row : all_row_bytes(harness_->judge(2, tree, parents))) alone.push_back(row);
    const std::vector<int32_t> path = path_to(parents, random.below(12));
    harness_->accept(2, path);
    const ModelHarness::Memory after_alone = harness_->save();

    prefill_all();
    harness_->begin();
    harness_->add(0, chunk, {}, Keep::kAll);
    harness_->add(1, next, {}, Keep::kAll);
    harness_->add(2, tree, parents, Keep::kNone);
    const std::vector<std::string> batched = all_row_bytes(harness_->run());
    harness_->accept(2, path, 2);
    ASSERT_EQ(batched.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i)
      ASSERT_EQ(batched[i], alone[i]) << "row " << i << ": 33 rows of a chunk, a decode step, a tree of 12";
    for (int32_t slot = 0; slot < 3; ++slot) {
      const size_t bytes = harness_->state().layout.slot_bytes();
      EXPECT_EQ(harness_->state_bytes(slot), after_alone.state.substr(static_cast<size_t>(slot) * bytes, bytes))
          << "state of sequence " << slot;
    }
    EXPECT_TRUE(harness_->save().kv == after_alone.kv) << "pages";
  }
}

ESPALIER_ON_ALL_LAW_MODELS(BatchingLaw);

}  // namespace
}  // namespace espalier::testing
