// Law 1: one prefill = any chunking.
#include "tests/laws/law_model.h"

namespace espalier::testing {
namespace {

using ChunkingLaw = ModelLaw;

TEST_P(ChunkingLaw, OnePrefillIsAnyChunking) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto length = 60 + random.below(140);
    const std::vector<TokenId> tokens = random_tokens(random, length);
    harness_->reset();
    const ConstTensorView logits_of_whole = harness_->feed(0, tokens);
    const std::vector<std::string> whole = all_row_bytes(logits_of_whole);
    for (int64_t i = 0; i < logits_of_whole.shape.num_elements(); ++i)
      ASSERT_TRUE(std::isfinite(logits_of_whole.as<float>()[i])) << "equal NaNs would prove nothing";
    const std::string state = harness_->state_bytes(0);
    for (const int32_t largest : {1, 7, 64, 150}) {
      harness_->reset();
      while (harness_->committed(0) < length) {
        const int32_t begin = harness_->committed(0);
        const int32_t count = std::min(length - begin, 1 + random.below(largest));
        const ConstTensorView logits = harness_->feed(0, std::span(tokens).subspan(static_cast<size_t>(begin), static_cast<size_t>(count)));
        for (int32_t i = 0; i < count; ++i) {
          ASSERT_EQ(row_bytes(logits, i), whole[static_cast<size_t>(begin + i)])
              << "token " << begin + i << " in a chunk of " << count << " from " << begin;
        }
      }
      ASSERT_EQ(harness_->state_bytes(0), state) << "state after chunks of at most " << largest;
    }
  }
}

TEST_P(ChunkingLaw, ACaptureIsTheStateOfAPromptThatEndsThere) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::vector<TokenId> tokens = random_tokens(random, 90);
    const int32_t first = random.below(45), second = 45 + random.below(45);
    harness_->reset();
    const std::vector<SequenceInput::Capture> captures = {{.row = first, .slot = 3}, {.row = second, .slot = 4}};
    harness_->feed(0, tokens, captures);
    const std::string at_first = harness_->state_bytes(3), at_second = harness_->state_bytes(4);
    harness_->feed(1, std::span(tokens).first(static_cast<size_t>(first) + 1));
    EXPECT_EQ(harness_->state_bytes(1), at_first) << "after token " << first;
    harness_->feed(2, std::span(tokens).first(static_cast<size_t>(second) + 1));
    EXPECT_EQ(harness_->state_bytes(2), at_second) << "after token " << second;
  }
}

ESPALIER_ON_ALL_LAW_MODELS(ChunkingLaw);

}  // namespace
}  // namespace espalier::testing
