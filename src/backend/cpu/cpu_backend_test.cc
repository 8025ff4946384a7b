#include "backend/cpu/cpu_backend.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "backend/cpu/float_mode.h"
#include "backend/cpu/isa.h"
#include "backend/op_test_support.h"

namespace espalier::cpu {
namespace {

using ::testing::HasSubstr;

constexpr ModelNeeds kQwen = {
    .weight_dtype = DType::kBf16, .head_dim = 256, .key_head_dim = 128, .value_head_dim = 128, .conv_kernel = 4, .kv_dtype = DType::kBf16};

TEST(CpuBackend, EveryAvailableTableCanBeForced) {
  ASSERT_FALSE(available_tables().empty());
  for (const KernelTable* table : available_tables()) {
    EXPECT_EQ(make_cpu_backend({.threads = 1, .isa = table->name}).value()->name(), std::string("cpu (") + table->name + ")");
    ::setenv("ESPALIER_ISA", table->name, 1);
    EXPECT_EQ(make_cpu_backend({.threads = 1}).value()->name(), std::string("cpu (") + table->name + ")");
    ::unsetenv("ESPALIER_ISA");
  }
}

TEST(CpuBackend, AnUnknownTableIsRefusedWithTheNamesThereAre) {
  const auto backend = make_cpu_backend({.threads = 1, .isa = "sse9"});
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(backend.error().message, HasSubstr("sse9"));
  EXPECT_THAT(backend.error().message, HasSubstr(available_tables().front()->name));
}

TEST(CpuBackend, TakesTheFamilyAndRefusesWhatItCannotDoByName) {
  const auto backend = make_cpu_backend({.threads = 1}).value();
  EXPECT_TRUE(backend->check(kQwen).ok());
  const auto refusal = [&](auto change) {
    ModelNeeds needs = kQwen;
    change(needs);
    const Status status = backend->check(needs);
    EXPECT_FALSE(status.ok());
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_THAT(refusal([](ModelNeeds& n) { n.head_dim = 80; }), HasSubstr("attention head size 80"));
  EXPECT_THAT(refusal([](ModelNeeds& n) { n.key_head_dim = 24; }), HasSubstr("key head size 24"));
  EXPECT_THAT(refusal([](ModelNeeds& n) { n.value_head_dim = 512; }), HasSubstr("value head size 512"));
  EXPECT_THAT(refusal([](ModelNeeds& n) { n.value_head_dim = -16; }), HasSubstr("value head size -16"));
  EXPECT_THAT(refusal([](ModelNeeds& n) { n.conv_kernel = 9; }), HasSubstr("9 inputs"));
  EXPECT_THAT(refusal([](ModelNeeds& n) { n.kv_dtype = DType::kF8E4M3; }), HasSubstr("F8_E4M3"));
  EXPECT_THAT(refusal([](ModelNeeds& n) { n.weight_dtype = DType::kU8; }), HasSubstr("U8"));
}

// Ops flush denormals; the caller's own mode comes back afterwards.
TEST(CpuBackend, OpsFlushDenormalsAndRestoreTheCallersMode) {
  const auto backend = make_cpu_backend({.threads = 2}).value();
  const auto before = float_mode();
  const float denormal = 1e-40f, one = 1.0f;
  Tensor y(DType::kF32, {1, 1}), x(DType::kBf16, {1, 1}), w(DType::kF32, {1, 1});
  store_from_f32(x.view().data, DType::kBf16, 0, denormal);
  *w.as<float>() = one;
  const auto prepared = backend->prepare_weight(w.view());
  backend->ops().linear({.x = x.view(), .w = prepared.get(), .y = y.view()});
  EXPECT_EQ(*y.as<float>(), 0.0f);
  EXPECT_EQ(float_mode(), before);
}

}  // namespace
}  // namespace espalier::cpu
