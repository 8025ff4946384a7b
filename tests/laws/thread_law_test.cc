// Law 8 at the level of ops: the number of threads changes no byte. All tables, shapes with uneven shares.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "backend/attention_test_support.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"

namespace espalier::cpu {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the op test support

class ThreadLawTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  // `bytes` runs an op on a backend and returns everything it wrote.
  static void expect_same(const std::function<std::string(Backend&)>& bytes) {
    std::string alone;
    for (const int threads : {1, 2, 3, 5}) {
      const auto backend = make_cpu_backend({.threads = threads, .isa = GetParam()->name}).value();
      const std::string result = bytes(*backend);
      if (threads == 1) alone = result;
      ASSERT_FALSE(alone.empty());
      ASSERT_TRUE(result == alone) << threads << " threads";
    }
  }
};

std::string bytes_of(const ConstTensorView& view) { return {static_cast<const char*>(view.data), view.size_bytes()}; }

TEST_P(ThreadLawTest, Linear) {
  for (const int64_t rows : {1, 5, 200, 500}) {
    expect_same([&](Backend& backend) {
      Random random(1);
      const Tensor w = random_tensor(DType::kBf16, {333, 96}, random), x = random_tensor(DType::kBf16, {rows, 96}, random);
      const auto prepared = backend.prepare_weight(w.view());
      Tensor y(DType::kF32, {rows, 333});
      backend.ops().linear({.x = x.view(), .w = prepared.get(), .y = y.view()});
      return bytes_of(y.view());
    });
  }
}

// One decode step over three spans (split over threads on more than one), and a chunk of many blocks (each walks its spans in order).
TEST_P(ThreadLawTest, Attention) {
  constexpr int32_t kHistory = 2 * kAttentionSpan + 100;
  expect_same([&](Backend& backend) {
    Random random(2);
    GatedAttentionPair pair(
        backend, {.num_heads = 6, .num_kv_heads = 2, .head_dim = 64, .kv_dtype = DType::kBf16, .max_slots = kHistory + 600}, random);
    std::vector<int32_t> contents;
    for (int32_t i = 0; i < kHistory; ++i) contents.push_back(random.below(64));
    pair.write(TestBatch({{.parents = chain(kHistory), .pages = pair.pages(0)}}), contents);
    std::string all = bytes_of(pair.output(TestBatch({{.parents = {-1}, .base = kHistory, .pages = pair.pages(0)}}), {5}).view());
    contents.resize(600);
    return all + bytes_of(pair.output(TestBatch({{.parents = chain(600), .base = kHistory, .pages = pair.pages(0)}}), contents).view());
  });
}

TEST_P(ThreadLawTest, RecurrenceAndConvolution) {
  for (const int32_t rows : {1, 3, 40}) {
    expect_same([&](Backend& backend) {
      Random random(3);
      const StateLayout layout{.num_layers = 1,
                               .num_value_heads = 3,
                               .key_head_dim = 32,
                               .value_head_dim = 64,
                               .conv_dim = 1300,
                               .conv_kernel = 4,
                               .hidden_size = 8,
                               .activation_dtype = DType::kBf16};
      Tensor pool = random_tensor(DType::kF32, {2, static_cast<int64_t>(layout.slot_bytes() / sizeof(float))}, random);
      const StateView state{reinterpret_cast<std::byte*>(pool.as<float>()), layout};
      const TestBatch batch({{.parents = chain(rows), .captures = {{rows / 2, 1}}}});
      const Tensor qkv = random_tensor(DType::kF32, {rows, 2 * 32 + 3 * 64}, random), gates = random_tensor(DType::kF32, {rows, 3}, random);
      const Tensor u = random_tensor(DType::kF32, {rows, 1300}, random), weight = random_tensor(DType::kF32, {1300, 4}, random);
      Tensor o(DType::kF32, {rows, 3 * 64}), y(DType::kF32, {rows, 1300});
      backend.ops().gated_delta_rule({.batch = &batch.view(),
                                      .qkv = qkv.view(),
                                      .a = gates.view(),
                                      .b = gates.view(),
                                      .a_log = gates.as<float>(),
                                      .dt_bias = gates.as<float>(),
                                      .num_key_heads = 1,
                                      .state = state,
                                      .layer = 0,
                                      .o = o.view()});
      backend.ops().causal_conv(
          {.batch = &batch.view(), .u = u.view(), .weight = weight.as<float>(), .state = state, .layer = 0, .y = y.view()});
      return bytes_of(o.view()) + bytes_of(y.view()) + bytes_of(pool.view());
    });
  }
}

TEST_P(ThreadLawTest, NormsAndGates) {
  expect_same([&](Backend& backend) {
    Random random(4);
    constexpr int64_t kRows = 37, kN = 256;
    const Tensor x = random_tensor(DType::kF32, {kRows, kN}, random), z = random_tensor(DType::kF32, {kRows, kN}, random);
    Tensor y(DType::kBf16, {3, kRows, kN});
    backend.ops().rms_norm(
        {.x = x.view(), .weight = z.as<float>(), .eps = 1e-6f, .y = {y.view().slice(0, 1).data, DType::kBf16, {kRows, kN}}});
    const auto heads = [&](const Tensor& t) { return ConstTensorView(t.as<float>(), DType::kF32, {kRows, 4, kN / 4}); };
    backend.ops().gated_norm({.o = heads(x),
                              .z = heads(z),
                              .weight = x.as<float>(),
                              .eps = 1e-6f,
                              .y = {y.view().slice(1, 1).data, DType::kBf16, {kRows, 4, kN / 4}}});
    backend.ops().silu_mul({.gate = x.view(), .up = z.view(), .y = {y.view().slice(2, 1).data, DType::kBf16, {kRows, kN}}});
    return bytes_of(y.view());
  });
}

INSTANTIATE_TEST_SUITE_P(Tables, ThreadLawTest, ::testing::ValuesIn(available_tables()), [](const auto& tested) {
  std::string name = tested.param->name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace espalier::cpu
