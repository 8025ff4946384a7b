#include "ops/gated_delta_rule.h"

#include "backend/row_law_test_support.h"

namespace espalier::testing {
namespace {

struct DeltaShape {
  int32_t num_key_heads, num_value_heads, key_dim, value_dim;
};

class DeltaRule final : public PathOp {
 public:
  DeltaRule(Backend& backend, const DeltaShape& s, Random& random)
      : shape(s),
        qkv(random_tensor(DType::kF32, {64, 2 * s.num_key_heads * s.key_dim + s.num_value_heads * s.value_dim}, random)),
        a(random_tensor(DType::kF32, {64, s.num_value_heads}, random, -4.0f, 4.0f)),
        b(random_tensor(DType::kF32, {64, s.num_value_heads}, random, -4.0f, 4.0f)),
        a_log(random_tensor(DType::kF32, {s.num_value_heads}, random, -3.0f, 1.0f)),
        dt_bias(random_tensor(DType::kF32, {s.num_value_heads}, random, -2.0f, 2.0f)),
        backend_(backend),
        layout_{.num_layers = 2,
                .num_value_heads = s.num_value_heads,
                .key_head_dim = s.key_dim,
                .value_head_dim = s.value_dim,
                .conv_dim = 8,
                .conv_kernel = 4,
                .hidden_size = 8,
                .activation_dtype = backend.activation_dtype()} {
    reset();
  }

  void reset() override { pool_ = Tensor(DType::kU8, {3, static_cast<int64_t>(layout_.slot_bytes())}); }
  RowBytes state(int32_t slot) override { return split_rows(pool_.view())[static_cast<size_t>(slot)]; }
  std::vector<int32_t> pages(int32_t) override { return {}; }
  std::vector<RowBytes> run(const TestBatch& batch, const std::vector<int32_t>& contents) override {
    return split_rows(output(batch, contents).view());
  }

  StateView states() { return {reinterpret_cast<std::byte*>(pool_.as<uint8_t>()), layout_}; }

  Tensor output(const TestBatch& batch, const std::vector<int32_t>& contents) {
    const Tensor qkv_rows = take_rows(qkv.view(), contents);
    const Tensor a_rows = take_rows(a.view(), contents);
    const Tensor b_rows = take_rows(b.view(), contents);
    Tensor o(DType::kF32, {static_cast<int64_t>(contents.size()), shape.num_value_heads * shape.value_dim});
    backend_.ops().gated_delta_rule({.batch = &batch.view(),
                                     .qkv = qkv_rows.view(),
                                     .a = a_rows.view(),
                                     .b = b_rows.view(),
                                     .a_log = a_log.as<float>(),
                                     .dt_bias = dt_bias.as<float>(),
                                     .num_key_heads = shape.num_key_heads,
                                     .state = states(),
                                     .layer = 1,
                                     .o = o.view()});
    return o;
  }

  const DeltaShape shape;
  Tensor qkv, a, b, a_log, dt_bias;

 private:
  Backend& backend_;
  StateLayout layout_;
  Tensor pool_;
};

// The recurrence of one path in double, state kept in double too. Returns o of each row, [rows, Hv * dv]; leaves S [Hv, dk, dv].
std::vector<double> recurrence(const DeltaRule& rule, const std::vector<int32_t>& contents, std::vector<double>& state) {
  const DeltaShape& s = rule.shape;
  const auto dk = static_cast<size_t>(s.key_dim), dv = static_cast<size_t>(s.value_dim);
  state.resize(static_cast<size_t>(s.num_value_heads) * dk * dv, 0.0);
  std::vector<double> o;
  for (const int32_t row : contents) {
    const float* qkv = rule.qkv.as<float>() + row * rule.qkv.shape()[1];
    for (int32_t j = 0; j < s.num_value_heads; ++j) {
      const int32_t h = j / (s.num_value_heads / s.num_key_heads);
      std::vector<double> q, k, v;
      double qq = 1e-6, kk = 1e-6;
      for (int32_t i = 0; i < s.key_dim; ++i) {
        q.push_back(qkv[h * s.key_dim + i]);
        k.push_back(qkv[(s.num_key_heads + h) * s.key_dim + i]);
        qq += q.back() * q.back();
        kk += k.back() * k.back();
      }
      for (double& x : q) x /= std::sqrt(qq) * std::sqrt(static_cast<double>(s.key_dim));
      for (double& x : k) x /= std::sqrt(kk);
      for (int32_t i = 0; i < s.value_dim; ++i) v.push_back(qkv[2 * s.num_key_heads * s.key_dim + j * s.value_dim + i]);
      const double raw = value(rule.a.view(), row * s.num_value_heads + j) + value(rule.dt_bias.view(), j);
      const double g = -std::exp(value(rule.a_log.view(), j)) * (raw > 20.0 ? raw : std::log1p(std::exp(raw)));
      const double beta = 1.0 / (1.0 + std::exp(-value(rule.b.view(), row * s.num_value_heads + j)));
      double* S = state.data() + static_cast<size_t>(j) * dk * dv;
      for (size_t i = 0; i < dk * dv; ++i) S[i] *= std::exp(g);
      for (size_t c = 0; c < dv; ++c) {
        double recalled = 0.0, out = 0.0;
        for (size_t i = 0; i < dk; ++i) recalled += S[i * dv + c] * k[i];
        for (size_t i = 0; i < dk; ++i) S[i * dv + c] += k[i] * beta * (v[c] - recalled);
        for (size_t i = 0; i < dk; ++i) out += S[i * dv + c] * q[i];
        o.push_back(out);
      }
    }
  }
  return o;
}

class GatedDeltaRuleTest : public OpTest {};

TEST_P(GatedDeltaRuleTest, IsTheRecurrenceInOrder) {
  Random random(15);
  for (const DeltaShape& shape : {DeltaShape{1, 1, 128, 128}, {2, 4, 128, 128}, {2, 6, 128, 128}, {1, 2, 64, 64}}) {
    DeltaRule rule(*backend_, shape, random);
    for (const int32_t length : {1, 2, 7, 33, 70}) {
      rule.reset();
      std::vector<int32_t> contents;
      for (int32_t i = 0; i < length; ++i) contents.push_back(random.below(64));
      std::vector<double> state;
      const std::vector<double> expected = recurrence(rule, contents, state);
      expect_close(rule.output(TestBatch({{.parents = chain(length), .state_slot = 2}}), contents).view(), expected, fp32_error());
      expect_close({rule.states().recurrent(2, 1), DType::kF32, {static_cast<int64_t>(state.size())}}, state, fp32_error());
    }
  }
}

TEST_P(GatedDeltaRuleTest, ATreeNodeContinuesItsParent) {
  Random random(16);
  DeltaRule rule(*backend_, {2, 4, 128, 128}, random);
  const std::vector<int32_t> prompt = {3, 1, 4, 1, 5};
  const std::vector<int32_t> parents = random_tree(16, random);
  std::vector<int32_t> tree;
  for (int32_t i = 0; i < 16; ++i) tree.push_back(random.below(64));
  rule.output(TestBatch({{.parents = chain(5)}}), prompt);
  const Tensor o = rule.output(TestBatch({{.parents = parents, .base = 5, .keep = Keep::kNone}}), tree);
  for (int32_t node = 0; node < 16; ++node) {
    std::vector<int32_t> contents = prompt;
    for (const int32_t n : path_to(parents, node)) contents.push_back(tree[static_cast<size_t>(n)]);
    std::vector<double> state;
    const std::vector<double> expected = recurrence(rule, contents, state);
    expect_close(o.view().slice(node, 1), {expected.end() - o.shape()[1], expected.end()}, fp32_error());
  }
}

TEST_P(GatedDeltaRuleTest, AHardResetForgetsEverything) {
  Random random(17);
  DeltaRule rule(*backend_, {1, 2, 128, 128}, random);
  for (int64_t i = 0; i < rule.a.shape().num_elements(); ++i) rule.a.as<float>()[i] = i / 2 == 9 ? 200.0f : 0.0f;
  std::fill_n(rule.a_log.as<float>(), 2, 0.0f);
  std::vector<double> state;
  const std::vector<double> expected = recurrence(rule, {1, 2, 9, 3}, state);
  expect_close(rule.output(TestBatch({{.parents = chain(4)}}), {1, 2, 9, 3}).view(), expected, fp32_error());
}

TEST_P(GatedDeltaRuleTest, ARowIsARow) {
  for (const uint32_t seed : {1u, 2u}) {
    Random random(seed);
    DeltaRule rule(*backend_, {1, 3, 128, 128}, random);
    expect_row_laws(rule, {.seed = seed});
  }
}

ESPALIER_ON_ALL_BACKENDS(GatedDeltaRuleTest);

}  // namespace
}  // namespace espalier::testing
