// Loading a model: what it holds is what its parts add up to, and wrong limits are refused in words.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "backend/op_test_support.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model_tensors.h"
#include "model/causal_lm.h"
#include "tests/support/tiny_checkpoint.h"

namespace espalier::testing {
namespace {

class ModelLoad : public ::testing::TestWithParam<BackendCase> {
 protected:
  std::unique_ptr<Backend> backend_ = GetParam().make();
};

TEST_P(ModelLoad, HoldsEachMatrixOnceAndTheEmbeddingAsStored) {
  for (const bool tied : {false, true}) {
    TinyCheckpointSpec spec;
    spec.tied = tied;
    const TemporaryDirectory directory = make_tiny_checkpoint(spec);
    const Checkpoint checkpoint = Checkpoint::open(directory.path()).value();
    size_t matrices = 0, per_token = 0, vectors = 0;
    const auto add = [&](const std::vector<TensorSpec>& tensors, bool trunk) {
      for (const TensorSpec& tensor : tensors) {
        const ConstTensorView stored = checkpoint.tensor(tensor.name).value();
        const bool is_embedding = tensor.kind == TensorKind::kEmbedding;
        if (is_embedding) vectors += stored.size_bytes();
        if (tensor.shape.rank() != 2) vectors += static_cast<size_t>(tensor.shape.num_elements()) * sizeof(float);
        if (tensor.shape.rank() == 2 && (!is_embedding || tied)) {
          const size_t prepared = backend_->prepared_weight_bytes(tensor.shape[0], tensor.shape[1], stored.dtype);
          matrices += prepared;
          per_token += trunk ? prepared : 0;
        }
      }
    };
    add(trunk_tensors(checkpoint.config()), true);
    add(mtp_tensors(checkpoint.config()), false);
    const auto model = CausalLm::load(checkpoint, *backend_, {}).value();
    EXPECT_EQ(model->bytes_per_token(), per_token);
    EXPECT_GE(model->weight_bytes(), matrices + vectors);
    EXPECT_LE(model->weight_bytes(), matrices + vectors + 64 * 100) << "but for the alignment of vectors";
  }
}

TEST_P(ModelLoad, TellsHowFarItIs) {
  for (const bool tied : {false, true}) {
    TinyCheckpointSpec spec;
    spec.tied = tied;
    const TemporaryDirectory directory = make_tiny_checkpoint(spec);
    const Checkpoint checkpoint = Checkpoint::open(directory.path()).value();
    std::vector<double> told;
    const auto listen = [&](double fraction) {
      told.push_back(fraction);
      return true;
    };
    ASSERT_TRUE(CausalLm::load(checkpoint, *backend_, {}, listen).ok());
    ASSERT_GT(told.size(), 10u);
    EXPECT_EQ(told.front(), 0.0);
    EXPECT_EQ(told.back(), 1.0);
    EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
    EXPECT_LT(told[told.size() - 2], 1.0);
    // The embedding comes first: its share of the bytes.
    const double embedding = static_cast<double>(checkpoint.tensor("embed_tokens.weight")->size_bytes());
    double all = tied ? embedding : 0.0;
    for (const auto& tensors : {trunk_tensors(checkpoint.config()), mtp_tensors(checkpoint.config())}) {
      for (const TensorSpec& tensor : tensors) all += static_cast<double>(checkpoint.tensor(tensor.name)->size_bytes());
    }
    EXPECT_DOUBLE_EQ(told[1], embedding / all);
  }
}

TEST_P(ModelLoad, CanBeCancelledAfterAnyTensor) {
  const TemporaryDirectory directory = make_tiny_checkpoint({});
  const Checkpoint checkpoint = Checkpoint::open(directory.path()).value();
  int num_calls = 0;
  ASSERT_TRUE(CausalLm::load(checkpoint, *backend_, {}, [&](double) { return ++num_calls > 0; }).ok());
  for (int last = 1; last <= num_calls; ++last) {
    int calls = 0;
    const auto model = CausalLm::load(checkpoint, *backend_, {}, [&](double) { return ++calls < last; });
    ASSERT_FALSE(model.ok()) << last;
    EXPECT_EQ(model.error().code, ErrorCode::kCancelled);
    EXPECT_NE(model.error().message.find(directory.path()), std::string::npos);
    EXPECT_EQ(calls, last);  // nothing is loaded or told after that
  }
}

TEST_P(ModelLoad, ScratchGrowsWithTheLargestPass) {
  const TemporaryDirectory directory = make_tiny_checkpoint({});
  const Checkpoint checkpoint = Checkpoint::open(directory.path()).value();
  const auto scratch = [&](const CausalLmOptions& options) {
    return CausalLm::load(checkpoint, *backend_, options).value()->activation_bytes();
  };
  const size_t small = scratch({.max_rows = 16, .max_outputs = 1, .max_uncommitted_rows = 16});
  EXPECT_GT(scratch({.max_rows = 32, .max_outputs = 1, .max_uncommitted_rows = 16}), small);
  EXPECT_GT(scratch({.max_rows = 16, .max_outputs = 2, .max_uncommitted_rows = 16}), small);
  EXPECT_LT(scratch({.max_rows = 16, .max_outputs = 1, .max_uncommitted_rows = 0}), small);
}

TEST_P(ModelLoad, RefusesLimitsThatNoPassFits) {
  const TemporaryDirectory directory = make_tiny_checkpoint({});
  const Checkpoint checkpoint = Checkpoint::open(directory.path()).value();
  for (const CausalLmOptions& options :
       {CausalLmOptions{.max_rows = 0, .max_uncommitted_rows = 0}, {.max_outputs = 0}, {.max_rows = 8, .max_uncommitted_rows = 9}}) {
    const auto model = CausalLm::load(checkpoint, *backend_, options);
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().code, ErrorCode::kInvalidArgument);
  }
}

ESPALIER_ON_ALL_BACKENDS(ModelLoad);

}  // namespace
}  // namespace espalier::testing
