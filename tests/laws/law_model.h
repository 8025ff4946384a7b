// The fixture of the model laws: random tiny checkpoints of different shapes, on every backend and instruction set, with two page sizes.
// Laws compare bytes. Every case prints its seed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "backend/batch_test_support.h"
#include "tests/support/model_harness.h"
#include "tests/support/tiny_checkpoint.h"

namespace espalier::testing {

struct LawShape {
  std::string name;
  TinyCheckpointSpec spec;
};

inline std::vector<LawShape> law_shapes() {
  constexpr auto G = LayerKind::kLinearAttention, F = LayerKind::kFullAttention;
  TinyCheckpointSpec regular;
  regular.layer_kinds = {G, G, G, F};
  TinyCheckpointSpec irregular;
  irregular.layer_kinds = {F, G, F, F, G};
  irregular.hidden_size = 96;
  irregular.num_heads = 6;
  irregular.num_kv_heads = 1;
  irregular.head_dim = 64;
  irregular.linear_num_key_heads = 1;
  irregular.linear_num_value_heads = 3;
  irregular.linear_key_head_dim = 64;
  irregular.linear_value_head_dim = 64;
  irregular.tied = true;
  irregular.mtp = false;
  irregular.seed = 2;
  return {{"regular", regular}, {"irregular", irregular}};
}

// The bytes of one logits row.
inline std::string row_bytes(const ConstTensorView& logits, int64_t row) {
  const ConstTensorView view = logits.slice(row, 1);
  return {static_cast<const char*>(view.data), view.size_bytes()};
}

inline std::vector<std::string> all_row_bytes(const ConstTensorView& logits) {
  std::vector<std::string> rows;
  for (int64_t r = 0; r < logits.rows(); ++r) rows.push_back(row_bytes(logits, r));
  return rows;
}

class ModelLaw : public ::testing::TestWithParam<std::tuple<LawShape, BackendCase, int32_t>> {
 protected:
  static constexpr int32_t kSeeds = 3;

  ModelLaw() : checkpoint_(make_tiny_checkpoint(std::get<0>(GetParam()).spec)) {
    harness_.emplace(std::get<1>(GetParam()), checkpoint_.path(),
                     HarnessOptions{.page_size = std::get<2>(GetParam()),
                                    .num_sequences = 3,
                                    .num_spare_slots = 2,
                                    .max_tokens = 256,
                                    .max_rows = 200,
                                    .max_uncommitted_rows = 40});
  }

  std::vector<TokenId> random_tokens(Random& random, int32_t count) const {
    std::vector<TokenId> tokens;
    for (int32_t i = 0; i < count; ++i) tokens.push_back(random.below(harness_->config().vocab_rows));
    return tokens;
  }

  // Logits of each of `tokens` fed one after the other to a sequence.
  std::vector<std::string> decode(int32_t sequence, const std::vector<TokenId>& tokens) {
    std::vector<std::string> rows;
    for (const TokenId token : tokens) rows.push_back(row_bytes(harness_->feed(sequence, {&token, 1}), 0));
    return rows;
  }

  TemporaryDirectory checkpoint_;
  std::optional<ModelHarness> harness_;
};

inline std::string model_law_name(const ::testing::TestParamInfo<ModelLaw::ParamType>& info) {
  return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name + "_pages_of_" + std::to_string(std::get<2>(info.param));
}

}  // namespace espalier::testing

#define ESPALIER_ON_ALL_LAW_MODELS(suite)                                                                                             \
  INSTANTIATE_TEST_SUITE_P(Models, suite,                                                                                             \
                           ::testing::Combine(::testing::ValuesIn(::espalier::testing::law_shapes()),                                 \
                                              ::testing::ValuesIn(::espalier::testing::test_backends()), ::testing::Values(64, 128)), \
                           ::espalier::testing::model_law_name)
