#include "ops/attention_input.h"

#include "backend/attention_test_support.h"

namespace espalier::testing {
namespace {

class AttentionInputTest : public OpTest {};

TEST_P(AttentionInputTest, NormalisesAndTurnsTheQueries) {
  Random random(18);
  for (const int32_t head_dim : {64, 128, 256}) {
    for (const int32_t rows : {1, 3, 17}) {
      GatedAttentionPair pair(*backend_,
                              {.num_heads = 3, .num_kv_heads = 1, .head_dim = head_dim, .kv_dtype = backend_->default_kv_dtype()}, random);
      std::vector<int32_t> contents;
      for (int32_t i = 0; i < rows; ++i) contents.push_back(random.below(64));
      const Tensor q = pair.write(TestBatch({{.parents = chain(rows), .base = 100, .pages = pair.pages(0)}}), contents);
      std::vector<double> expected;
      for (int32_t r = 0; r < rows; ++r) {
        for (int32_t h = 0; h < 3; ++h) {
          const float* x = pair.q_gate.as<float>() + (contents[static_cast<size_t>(r)] * 3 + h) * 2 * head_dim;
          const auto head = normed_and_rotated(x, pair.q_norm.as<float>(), head_dim, 100 + r, head_dim / 4);
          expected.insert(expected.end(), head.begin(), head.end());
        }
      }
      expect_close(q.view(), expected, 10 * fp32_error());
    }
  }
}

TEST_P(AttentionInputTest, FrequenciesFollowTheirPositionStream) {
  // Unit pairs (1, 0): what comes out is (cos, sin) of the angle of each frequency, times the norm's scale.
  constexpr int32_t kHeadDim = 256;
  Tensor q_gate(DType::kF32, {1, 1, 2, kHeadDim});
  for (int32_t i = 0; i < 32; ++i) q_gate.as<float>()[i] = 1.0f;
  const Tensor norm(DType::kF32, {kHeadDim});
  const Tensor k(DType::kF32, {1, 1, kHeadDim}), v(DType::kF32, {1, 1, kHeadDim});
  const KvLayout layout{.num_layers = 1, .num_kv_heads = 1, .head_dim = kHeadDim, .page_size = 64, .dtype = backend_->default_kv_dtype()};
  Tensor pool(DType::kU8, {static_cast<int64_t>(layout.page_bytes())});
  TestBatch batch({{.parents = chain(1), .pages = {0}}});
  for (const std::vector<int32_t>& positions : {std::vector<int32_t>{7, 7, 7}, {3, 50, 9}, {1000, 20, 17}, {262143, 262143, 262143}}) {
    batch.rotary() = positions;
    BatchView view = batch.view();
    view.rotary_position = batch.rotary().data();
    Tensor q(activation(), {1, 1, kHeadDim});
    ops().attention_input({.batch = &view,
                           .q_gate = q_gate.view(),
                           .k = k.view(),
                           .v = v.view(),
                           .q_norm = norm.as<float>(),
                           .k_norm = norm.as<float>(),
                           .eps = 1e-6f,
                           .rotary = {},
                           .kv = {reinterpret_cast<std::byte*>(pool.as<uint8_t>()), layout},
                           .layer = 0,
                           .q = q.view()});
    const double scale = 1.0 / std::sqrt(32.0 / kHeadDim + 1e-6);
    for (int32_t i = 0; i < 32; ++i) {
      const int32_t stream = i % 3 == 1 && i < 33 ? 1 : i % 3 == 2 && i < 30 ? 2 : 0;
      const float frequency = 1.0f / static_cast<float>(std::pow(1e7, i / 32.0));
      const double angle = static_cast<float>(positions[static_cast<size_t>(stream)]) * frequency;
      EXPECT_NEAR(value(q.view(), i), scale * std::cos(angle), scale * (rounding_of(activation()) + fp32_error())) << "frequency " << i;
      EXPECT_NEAR(value(q.view(), i + 32), scale * std::sin(angle), scale * (rounding_of(activation()) + fp32_error()))
          << "frequency " << i;
    }
  }
}

ESPALIER_ON_ALL_BACKENDS(AttentionInputTest);

}  // namespace
}  // namespace espalier::testing
