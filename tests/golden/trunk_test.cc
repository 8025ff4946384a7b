// The trunk against another implementation's float32 values: residual stream at every layer, logits, states, keys, greedy tokens.
#include "tests/golden/golden_model.h"

namespace espalier::testing {
namespace {

class TrunkGolden : public GoldenModelTest {
 protected:
  // Positions of `prompt` after which the goldens hold states, ascending.
  std::vector<int32_t> cuts_of(const std::string& prompt) const {
    std::vector<int32_t> cuts;
    for (int32_t cut = 1; cut < manifest_["prompts"][prompt].get<int32_t>(); ++cut) {
      if (trunk_->has(cut_name(prompt, cut) + "S_probe_k")) cuts.push_back(cut);
    }
    return cuts;
  }
  static std::string cut_name(const std::string& prompt, int32_t cut) { return format("{}.cut{}.state.", prompt, cut); }
};

TEST_P(TrunkGolden, EveryPromptIsMetLayerByLayer) {
  const int32_t num_layers = harness_->config().num_layers;
  HiddenRecorder hidden;
  for (const std::string& prompt : prompts()) {
    const std::vector<TokenId> tokens = trunk_->ints(prompt + ".tokens");
    const std::vector<int32_t> rows = trunk_->ints(prompt + ".rows");
    harness_->reset();
    hidden.clear();
    const ConstTensorView logits = harness_->feed(0, tokens, {}, &hidden);

    const auto golden_hidden = trunk_->floats(prompt + ".hidden");  // [L + 1, rows, hidden_size]
    const size_t layer_size = golden_hidden.size() / static_cast<size_t>(num_layers + 1);
    for (int32_t i = 0; i <= num_layers; ++i) {
      expect_within(rows_of(hidden[i].view(), rows), golden_hidden.subspan(static_cast<size_t>(i) * layer_size, layer_size),
                    allowances_.hidden, format("{}, residual stream {}", prompt, i));
    }
    expect_within(rows_of(hidden[num_layers + 1].view(), rows), trunk_->floats(prompt + ".final"), allowances_.final, prompt + ".final");
    expect_within(rows_of(logits, rows), trunk_->floats(prompt + ".logits"), allowances_.logits, prompt + ".logits");

    const std::vector<int32_t> argmax = trunk_->ints(prompt + ".argmax");
    for (size_t i = 0; i < tokens.size(); ++i) {
      const Choice choice = choose(logits, static_cast<int64_t>(i));
      if (choice.margin <= allowances_.margin) continue;
      EXPECT_EQ(choice.token, argmax[i]) << prompt << ", row " << i;
    }
  }
}

TEST_P(TrunkGolden, StatesAndKeysAfterEveryPrompt) {
  for (const std::string& prompt : prompts()) {
    const std::vector<TokenId> tokens = trunk_->ints(prompt + ".tokens");
    harness_->reset();
    harness_->feed(0, tokens);
    expect_states(0, prompt + ".state.");
    if (trunk_->has(prompt + ".state.conv"))
      expect_within(kept_inputs(0), trunk_->floats(prompt + ".state.conv"), allowances_.conv, prompt + ".state.conv");
    if (trunk_->has(prompt + ".state.S")) {
      const StateView state = harness_->state();
      std::vector<float> matrices;
      for (int32_t layer = 0; layer < state.layout.num_layers; ++layer) {
        const float* s = state.recurrent(0, layer);
        matrices.insert(matrices.end(), s, s + state.layout.recurrent_bytes() / sizeof(float));
      }
      expect_within(matrices, trunk_->floats(prompt + ".state.S"), allowances_.recurrent, prompt + ".state.S");
    }
    int32_t kv_layer = 0;
    for (int32_t layer = 0; layer < harness_->config().num_layers; ++layer) {
      if (harness_->config().layer_kinds[static_cast<size_t>(layer)] != LayerKind::kFullAttention) continue;
      const std::string name = format("{}.layer{}.", prompt, layer);
      if (trunk_->has(name + "k")) {
        const auto count = static_cast<int32_t>(tokens.size());
        expect_within(stored(KvPart::kKey, kv_layer, 0, count), trunk_->floats(name + "k"), allowances_.kv, name + "k");
        expect_within(stored(KvPart::kValue, kv_layer, 0, count), trunk_->floats(name + "v"), allowances_.kv, name + "v");
      }
      ++kv_layer;
    }
  }
}

TEST_P(TrunkGolden, StatesInTheMiddleAreCapturedInPassing) {
  int32_t num_cuts = 0;
  for (const std::string& prompt : prompts()) {
    const std::vector<int32_t> cuts = cuts_of(prompt);
    std::vector<SequenceInput::Capture> captures;
    for (const int32_t cut : cuts) captures.push_back({.row = cut - 1, .slot = 1 + static_cast<int32_t>(captures.size())});
    harness_->reset();
    const std::vector<TokenId> tokens = trunk_->ints(prompt + ".tokens");
    harness_->feed(0, tokens, captures);
    for (size_t i = 0; i < cuts.size(); ++i) expect_states(captures[i].slot, cut_name(prompt, cuts[i]));
    num_cuts += static_cast<int32_t>(cuts.size());
  }
  EXPECT_GE(num_cuts, 6);
}

TEST_P(TrunkGolden, StatesInTheMiddleAreThoseOfAChunkedPrompt) {
  for (const std::string& prompt : prompts()) {
    const std::vector<TokenId> tokens = trunk_->ints(prompt + ".tokens");
    harness_->reset();
    for (const int32_t cut : cuts_of(prompt)) {
      const auto begin = static_cast<size_t>(harness_->committed(0));
      harness_->feed(0, std::span(tokens).subspan(begin, static_cast<size_t>(cut) - begin));
      expect_states(0, cut_name(prompt, cut));
    }
  }
}

TEST_P(TrunkGolden, GreedyContinuationsAgreeTokenByToken) {
  for (const std::string& prompt : prompts()) {
    if (!trunk_->has(prompt + ".greedy")) continue;
    const std::vector<int32_t> greedy = trunk_->ints(prompt + ".greedy");
    const auto margins = trunk_->floats(prompt + ".greedy_margin");
    const auto golden_logits = trunk_->floats(prompt + ".greedy_logits");
    const std::vector<TokenId> tokens = trunk_->ints(prompt + ".tokens");
    harness_->reset();
    ConstTensorView logits = harness_->feed(0, tokens);
    logits = logits.slice(static_cast<int64_t>(tokens.size()) - 1, 1);
    std::vector<float> decoded;
    for (size_t step = 0; step < greedy.size(); ++step) {
      // The golden token is fed, not ours: the same while every choice agrees, and comparable after one too close to call.
      if (margins[step] > allowances_.margin) {
        EXPECT_EQ(choose(logits, 0).token, greedy[step]) << prompt << ", step " << step << ", margin " << margins[step];
      }
      if (decoded.size() < golden_logits.size()) decoded.insert(decoded.end(), logits.as<float>(), logits.as<float>() + logits.shape[1]);
      logits = harness_->feed(0, std::span(greedy).subspan(step, 1));
    }
    expect_within(decoded, golden_logits, allowances_.logits, prompt + ".greedy_logits");
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, TrunkGolden, ::testing::ValuesIn(golden_cases()), golden_case_name);

}  // namespace
}  // namespace espalier::testing
