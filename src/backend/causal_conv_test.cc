#include "ops/causal_conv.h"

#include "backend/row_law_test_support.h"

namespace espalier::testing {
namespace {

class Convolution final : public PathOp {
 public:
  Convolution(Backend& backend, int32_t channels, int32_t kernel, Random& random)
      : backend_(backend),
        layout_{.num_layers = 2,
                .num_value_heads = 1,
                .key_head_dim = 4,
                .value_head_dim = 4,
                .conv_dim = channels,
                .conv_kernel = kernel,
                .hidden_size = 8,
                .activation_dtype = backend.activation_dtype()},
        inputs(random_tensor(DType::kF32, {64, channels}, random, -3.0f, 3.0f)),
        weight(random_tensor(DType::kF32, {channels, kernel}, random)) {
    reset();
  }

  void reset() override { pool_ = Tensor(DType::kU8, {3, static_cast<int64_t>(layout_.slot_bytes())}); }
  RowBytes state(int32_t slot) override { return split_rows(pool_.view())[static_cast<size_t>(slot)]; }
  std::vector<int32_t> pages(int32_t) override { return {}; }

  std::vector<RowBytes> run(const TestBatch& batch, const std::vector<int32_t>& contents) override {
    return split_rows(output(batch, contents).view());
  }

  Tensor output(const TestBatch& batch, const std::vector<int32_t>& contents) {
    const Tensor u = take_rows(inputs.view(), contents);
    Tensor y(DType::kF32, u.shape());
    backend_.ops().causal_conv({.batch = &batch.view(),
                                .u = u.view(),
                                .weight = weight.as<float>(),
                                .state = {reinterpret_cast<std::byte*>(pool_.as<uint8_t>()), layout_},
                                .layer = 1,
                                .y = y.view()});
    return y;
  }

 private:
  Backend& backend_;
  StateLayout layout_;
  Tensor pool_;

 public:
  const Tensor inputs;
  const Tensor weight;
};

class CausalConvTest : public OpTest {};

TEST_P(CausalConvTest, IsTheConvolutionOfEachPath) {
  Random random(14);
  for (const int32_t channels : {1, 17, 64, 200}) {
    for (const int32_t kernel : {2, 4}) {
      Convolution conv(*backend_, channels, kernel, random);
      const std::vector<int32_t> parents = random_tree(12, random);
      std::vector<int32_t> prompt, tree;
      for (int32_t i = 0; i < 5; ++i) prompt.push_back(random.below(64));
      for (int32_t i = 0; i < 12; ++i) tree.push_back(random.below(64));
      for (const int32_t base : {0, 1, 2, 5}) {
        conv.reset();
        if (base > 0) conv.output(TestBatch({{.parents = chain(base)}}), {prompt.begin(), prompt.begin() + base});
        const Tensor y = conv.output(TestBatch({{.parents = parents, .base = base, .keep = Keep::kNone}}), tree);
        std::vector<double> expected;
        for (int32_t node = 0; node < 12; ++node) {
          std::vector<int32_t> rows(prompt.begin(), prompt.begin() + base);
          for (const int32_t n : path_to(parents, node)) rows.push_back(tree[static_cast<size_t>(n)]);
          for (int32_t c = 0; c < channels; ++c) {
            double sum = 0.0;
            for (int32_t j = 0; j < kernel; ++j) {
              const int32_t at = static_cast<int32_t>(rows.size()) - kernel + j;
              if (at < 0) continue;
              float u = conv.inputs.as<float>()[rows[static_cast<size_t>(at)] * channels + c];
              store_from_f32(&u, activation(), 0, u);
              sum += static_cast<double>(load_as_f32(&u, activation(), 0)) * value(conv.weight.view(), c * kernel + j);
            }
            expected.push_back(sum / (1.0 + std::exp(-sum)));
          }
        }
        expect_close(y.view(), expected, 20 * fp32_error());
      }
    }
  }
}

TEST_P(CausalConvTest, ARowIsARow) {
  for (const uint32_t seed : {1u, 2u, 3u}) {
    for (const int32_t channels : {20, 130}) {
      Random random(seed);
      Convolution conv(*backend_, channels, 4, random);
      expect_row_laws(conv, {.seed = seed});
    }
  }
}

ESPALIER_ON_ALL_BACKENDS(CausalConvTest);

}  // namespace
}  // namespace espalier::testing
