// Single functions of another implementation, in float32, against the ops of every backend.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "backend/batch_test_support.h"
#include "tests/support/golden_compare.h"
#include "tests/support/oracle.h"

namespace espalier::testing {
namespace {

class OpsGolden : public OpTest {
 protected:
  void SetUp() override {
    ESPALIER_REQUIRE_SHARED();
    golden_.emplace(shared_path("oracle/tiny-hybrid/golden/ops.safetensors"));
  }

  // float32 noise of both sides, and where a backend rounds its output or what it keeps, one such rounding of the largest value.
  Allowance allowance(const std::string& name, DType rounded_to) const {
    double largest = 1.0;
    for (const float x : golden_->floats(name)) largest = std::max(largest, std::abs(static_cast<double>(x)));
    return {.max = 1e-5 * largest + (rounded_to == DType::kF32 ? 0.0 : rounding_of(rounded_to) * largest)};
  }
  void expect_golden(const ConstTensorView& actual, const std::string& name, DType rounded_to) const {
    const Tensor values = to_f32(actual);
    expect_within(values.span<float>(), golden_->floats(name), allowance(name, rounded_to), name);
  }
  const float* data(const std::string& name) const { return golden_->view(name).as<float>(); }

  // The goldens turn without a norm. The op's norm multiplies a head by a constant, which is divided out again.
  std::vector<float> turned(const std::string& name, const std::vector<int32_t>& positions) {
    const ConstTensorView q = golden_->view(name);
    const int64_t rows = q.shape[0], heads = q.shape[1], dim = q.shape[2];
    Tensor q_gate(DType::kF32, {rows, heads, 2, dim});
    for (int64_t i = 0; i < rows * heads; ++i) std::copy_n(q.as<float>() + i * dim, dim, q_gate.as<float>() + i * 2 * dim);
    const KvLayout layout{
        .num_layers = 1, .num_kv_heads = 1, .head_dim = static_cast<int32_t>(dim), .page_size = 64, .dtype = backend_->default_kv_dtype()};
    Tensor pool(DType::kU8, {static_cast<int64_t>(layout.page_bytes())});
    const Tensor k(DType::kF32, {rows, 1, dim}), v(DType::kF32, {rows, 1, dim}), norm(DType::kF32, {dim});
    const TestBatch batch({{.parents = chain(static_cast<int32_t>(rows)), .pages = {0}}});
    BatchView view = batch.view();
    view.rotary_position = positions.data();
    Tensor y(activation(), q.shape);
    ops().attention_input({.batch = &view,
                           .q_gate = q_gate.view(),
                           .k = k.view(),
                           .v = v.view(),
                           .q_norm = norm.as<float>(),
                           .k_norm = norm.as<float>(),
                           .eps = 1e-6f,
                           .rotary = {},
                           .kv = {pool.view().as<std::byte>(), layout},
                           .layer = 0,
                           .q = y.view()});
    std::vector<float> out;
    for (int64_t i = 0; i < rows * heads; ++i) {
      double squares = 0.0;
      for (int64_t d = 0; d < dim; ++d) squares += std::pow(value(q, i * dim + d), 2);
      for (int64_t d = 0; d < dim; ++d)
        out.push_back(static_cast<float>(value(y.view(), i * dim + d) * std::sqrt(squares / static_cast<double>(dim) + 1e-6)));
    }
    return out;
  }

  std::optional<GoldenFile> golden_;
};

TEST_P(OpsGolden, ZeroCentredNorm) {
  for (const std::string suffix : {"", "_small"}) {
    const ConstTensorView x = golden_->view("znorm.x" + suffix);
    Tensor y(activation(), x.shape);
    ops().rms_norm({.x = x, .weight = data("znorm.w"), .eps = 1e-6f, .y = y.view()});
    expect_golden(y.view(), "znorm.y" + suffix, activation());
  }
}

TEST_P(OpsGolden, GatedNorm) {
  const Shape shape{6, 1, 128};
  Tensor y(activation(), shape);
  ops().gated_norm({.o = {data("gnorm.o"), DType::kF32, shape},
                    .z = {data("gnorm.z"), DType::kF32, shape},
                    .weight = data("gnorm.w"),
                    .eps = 1e-6f,
                    .y = y.view()});
  expect_golden(y.view(), "gnorm.y", activation());
}

TEST_P(OpsGolden, ConvolutionFromZeroAndFromAState) {
  const ConstTensorView u = golden_->view("conv.u");
  const auto channels = static_cast<int32_t>(u.shape[1]);
  const StateLayout layout{.num_layers = 1, .conv_dim = channels, .conv_kernel = 4, .hidden_size = 1, .activation_dtype = activation()};
  Tensor pool(DType::kU8, {2 * static_cast<int64_t>(layout.slot_bytes())});
  const StateView state{pool.view().as<std::byte>(), layout};
  for (int32_t c = 0; c < channels; ++c) {  // the golden's states are [channels, 3]
    for (int32_t j = 0; j < 3; ++j)
      store_from_f32(state.conv(1, 0), activation(), static_cast<size_t>(j * channels + c), data("conv.state")[c * 3 + j]);
  }
  for (const int32_t slot : {0, 1}) {
    Tensor y(DType::kF32, u.shape);
    const TestBatch batch({{.parents = chain(static_cast<int32_t>(u.rows())), .state_slot = slot}});
    ops().causal_conv({.batch = &batch.view(), .u = u, .weight = data("conv.w"), .state = state, .layer = 0, .y = y.view()});
    expect_golden(y.view(), slot == 0 ? "conv.y_zero_state" : "conv.y_with_state", activation());
  }
  std::vector<float> kept;
  for (int32_t c = 0; c < channels; ++c) {
    for (int32_t j = 0; j < 3; ++j) kept.push_back(load_as_f32(state.conv(1, 0), activation(), static_cast<size_t>(j * channels + c)));
  }
  expect_within(kept, golden_->floats("conv.state_after"), allowance("conv.state_after", activation()), "conv.state_after");
}

// The golden gives g and beta; b and a are found that make them: beta = sigmoid(b), and g = -softplus(a) with A_log = dt_bias = 0.
TEST_P(OpsGolden, GatedDeltaRuleFromZeroAndFromAState) {
  constexpr int32_t kRows = 70, kKeyHeads = 2, kValueHeads = 4, kDim = 128;
  const StateLayout layout{.num_layers = 1,
                           .num_value_heads = kValueHeads,
                           .key_head_dim = kDim,
                           .value_head_dim = kDim,
                           .conv_dim = 1,
                           .conv_kernel = 4,
                           .hidden_size = 1,
                           .activation_dtype = activation()};
  Tensor pool(DType::kU8, {2 * static_cast<int64_t>(layout.slot_bytes())});
  const StateView state{pool.view().as<std::byte>(), layout};
  std::memcpy(state.recurrent(1, 0), data("gdn.S0"), layout.recurrent_bytes());

  Tensor qkv(DType::kF32, {kRows, (2 * kKeyHeads + kValueHeads) * kDim}), a(DType::kF32, {kRows, kValueHeads}),
      b(DType::kF32, {kRows, kValueHeads});
  for (int32_t r = 0; r < kRows; ++r) {
    float* row = qkv.as<float>() + r * qkv.shape()[1];
    row = std::copy_n(data("gdn.q") + r * kKeyHeads * kDim, kKeyHeads * kDim, row);
    row = std::copy_n(data("gdn.k") + r * kKeyHeads * kDim, kKeyHeads * kDim, row);
    std::copy_n(data("gdn.v") + r * kValueHeads * kDim, kValueHeads * kDim, row);
  }
  for (int32_t i = 0; i < kRows * kValueHeads; ++i) {
    const double g = data("gdn.g")[i], beta = data("gdn.beta")[i];
    a.as<float>()[i] = static_cast<float>(-g > 20.0 ? -g : std::log(std::expm1(-g)));
    b.as<float>()[i] = static_cast<float>(std::log(beta / (1.0 - beta)));
  }
  const std::vector<float> zeros(kValueHeads, 0.0f);
  std::vector<float> from_zero, from_state;
  for (const int32_t slot : {0, 1}) {
    Tensor o(DType::kF32, {kRows, kValueHeads * kDim});
    const TestBatch batch({{.parents = chain(kRows), .state_slot = slot}});
    ops().gated_delta_rule({.batch = &batch.view(),
                            .qkv = qkv.view(),
                            .a = a.view(),
                            .b = b.view(),
                            .a_log = zeros.data(),
                            .dt_bias = zeros.data(),
                            .num_key_heads = kKeyHeads,
                            .state = state,
                            .layer = 0,
                            .o = o.view()});
    for (int32_t r = 0; r < kRows; r += slot == 0 ? 5 : 1) {  // from zero the golden has every fifth row
      const float* row = o.as<float>() + r * kValueHeads * kDim;
      auto& out = slot == 0 ? from_zero : from_state;
      out.insert(out.end(), row, row + kValueHeads * kDim);
    }
  }
  expect_within(from_zero, golden_->floats("gdn.o_zero"), allowance("gdn.o_zero", DType::kF32), "gdn.o_zero");
  expect_within(from_state, golden_->floats("gdn.o"), allowance("gdn.o", DType::kF32), "gdn.o");
  expect_golden({state.recurrent(1, 0), DType::kF32, {kValueHeads, kDim, kDim}}, "gdn.S", DType::kF32);
  std::vector<float> sixteenths;
  for (int32_t i = 0; i < kValueHeads * kDim * kDim; ++i) {
    if (i % kDim % 16 == 0 && i / kDim % kDim % 16 == 0) sixteenths.push_back(state.recurrent(0, 0)[i]);
  }
  expect_within(sixteenths, golden_->floats("gdn.S_zero_probe"), allowance("gdn.S_zero_probe", DType::kF32), "gdn.S_zero_probe");
}

// With q = k = v = (1, 0, 0, ...) and an empty state, o[0] = beta / sqrt(dk) up to the norm's 1e-6; a row of S that no key touches is only
// decayed.
TEST_P(OpsGolden, Gates) {
  constexpr int32_t kHeads = 6, kDim = 128;
  const StateLayout layout{.num_layers = 1,
                           .num_value_heads = kHeads,
                           .key_head_dim = kDim,
                           .value_head_dim = kDim,
                           .conv_dim = 1,
                           .conv_kernel = 4,
                           .hidden_size = 1,
                           .activation_dtype = activation()};
  Tensor qkv(DType::kF32, {1, 3 * kHeads * kDim});
  for (int32_t h = 0; h < 3 * kHeads; ++h) qkv.as<float>()[h * kDim] = 1.0f;
  const TestBatch batch({{.parents = chain(1)}});
  std::vector<float> betas, decays, golden_decays;
  for (int32_t r = 0; r < 7; ++r) {
    Tensor pool(DType::kU8, {static_cast<int64_t>(layout.slot_bytes())});
    const StateView state{pool.view().as<std::byte>(), layout};
    for (int32_t h = 0; h < kHeads; ++h) state.recurrent(0, 0)[(h * kDim + 1) * kDim + 1] = 1.0f;
    Tensor o(DType::kF32, {1, kHeads * kDim});
    ops().gated_delta_rule({.batch = &batch.view(),
                            .qkv = qkv.view(),
                            .a = golden_->view("gates.a").slice(r, 1),
                            .b = golden_->view("gates.b").slice(r, 1),
                            .a_log = data("gates.A_log"),
                            .dt_bias = data("gates.dt_bias"),
                            .num_key_heads = kHeads,
                            .state = state,
                            .layer = 0,
                            .o = o.view()});
    for (int32_t h = 0; h < kHeads; ++h) {
      betas.push_back(o.as<float>()[h * kDim] * std::sqrt(128.0f));
      decays.push_back(state.recurrent(0, 0)[(h * kDim + 1) * kDim + 1]);
      golden_decays.push_back(std::exp(golden_->floats("gates.g")[static_cast<size_t>(r * kHeads + h)]));
    }
  }
  expect_within(betas, golden_->floats("gates.beta"), {.max = 3e-6}, "beta");
  expect_within(decays, golden_decays, {.max = 3e-6}, "exp(g)");
}

TEST_P(OpsGolden, RotaryEmbedding) {
  const std::vector<int32_t> position = golden_->ints("rope.pos");
  std::vector<int32_t> streams;
  for (int stream = 0; stream < 3; ++stream) streams.insert(streams.end(), position.begin(), position.end());
  expect_within(turned("rope.q", streams), golden_->floats("rope.q_out"), allowance("rope.q_out", activation()), "rope.q_out");
}

TEST_P(OpsGolden, RotaryEmbeddingOfThreeStreams) {
  expect_within(turned("mrope.q", golden_->ints("mrope.pos")), golden_->floats("mrope.q_out"), allowance("mrope.q_out", activation()),
                "mrope.q_out");
}

ESPALIER_ON_ALL_BACKENDS(OpsGolden);

}  // namespace
}  // namespace espalier::testing
