// What op tests share: the fixture over all backends, random tensors, and the comparison with a formula evaluated in double. For tests
// only.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "backend/backends_test_support.h"
#include "tensor/codec.h"
#include "tensor/tensor.h"

namespace espalier::testing {

// Row counts around every blocking that a kernel may have.
inline constexpr int64_t kRowCounts[] = {1, 2, 3, 7, 16, 17, 33};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  float uniform(float low = -1.0f, float high = 1.0f) { return low + (high - low) * static_cast<float>(engine_() >> 8) * 0x1p-24f; }
  int32_t below(int32_t bound) { return static_cast<int32_t>(engine_() % static_cast<uint32_t>(bound)); }

 private:
  std::mt19937 engine_;
};

inline void fill(TensorView view, Random& random, float low = -1.0f, float high = 1.0f) {
  for (int64_t i = 0; i < view.shape.num_elements(); ++i)
    store_from_f32(view.data, view.dtype, static_cast<size_t>(i), random.uniform(low, high));
}

inline Tensor random_tensor(DType dtype, const Shape& shape, Random& random, float low = -1.0f, float high = 1.0f) {
  Tensor tensor(dtype, shape);
  fill(tensor.view(), random, low, high);
  return tensor;
}

inline double value(const ConstTensorView& view, int64_t index) { return load_as_f32(view.data, view.dtype, static_cast<size_t>(index)); }

// What one rounding to `dtype` may change, relative to the value.
inline double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return 0x1p-8;
    case DType::kF16:
      return 0x1p-11;
    case DType::kF8E4M3:
      return 0x1p-4;
    default:
      return 0x1p-23;
  }
}

// |actual - expected| <= one rounding to the output's dtype + `error`, for each element.
inline void expect_close(const ConstTensorView& actual, const std::vector<double>& expected, double error) {
  ASSERT_EQ(static_cast<size_t>(actual.shape.num_elements()), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(value(actual, static_cast<int64_t>(i)), expected[i], rounding_of(actual.dtype) * std::abs(expected[i]) + error)
        << "element " << i;
  }
}

inline bool bytes_equal(const ConstTensorView& a, const ConstTensorView& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.data, b.data, a.size_bytes()) == 0;
}

class OpTest : public ::testing::TestWithParam<BackendCase> {
 protected:
  OpTest() : backend_(GetParam().make()) {}

  Ops& ops() { return backend_->ops(); }
  DType activation() const { return backend_->activation_dtype(); }
  // Error of an op that keeps FP32 inside, for values of size 1: sums in FP32 and the backend's own exp, log, sin and cos.
  double fp32_error() const { return activation() == DType::kF32 ? 1e-6 : 1e-5; }
  // KV dtypes that this backend accepts.
  std::vector<DType> kv_dtypes() const {
    std::vector<DType> dtypes;
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF8E4M3}) {
      if (backend_->check({.head_dim = 256, .key_head_dim = 128, .value_head_dim = 128, .conv_kernel = 4, .kv_dtype = dtype}).ok())
        dtypes.push_back(dtype);
    }
    return dtypes;
  }

  std::unique_ptr<Backend> backend_;
};

inline std::string backend_case_name(const ::testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

}  // namespace espalier::testing

// Runs every test of `suite` on all backends and instruction sets.
#define ESPALIER_ON_ALL_BACKENDS(suite) \
  INSTANTIATE_TEST_SUITE_P(All, suite, ::testing::ValuesIn(::espalier::testing::test_backends()), ::espalier::testing::backend_case_name)
