#include "ops/linear.h"

#include "backend/op_test_support.h"

namespace espalier::testing {
namespace {

class LinearTest : public OpTest {
 protected:
  // Multiples of 1/64 below 2: exact in BF16, F16 and F32, so no backend may lose anything of them.
  static Tensor random_weight(DType dtype, const Shape& shape, Random& random) {
    Tensor weight(dtype, shape);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      store_from_f32(weight.view().data, dtype, static_cast<size_t>(i), static_cast<float>(random.below(255) - 127) / 64.0f);
    }
    return weight;
  }

  Tensor product(const ConstTensorView& x, const PreparedWeight& w) {
    Tensor y(DType::kF32, {x.rows(), w.n()});
    ops().linear({.x = x, .w = &w, .y = y.view()});
    return y;
  }
};

TEST_P(LinearTest, IsXTimesWTransposed) {
  Random random(5);
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    for (const int64_t k : {1, 31, 32, 40, 64, 100, 128, 257, 1056}) {
      for (const int64_t n : {1, 15, 16, 17, 40, 130}) {
        const Tensor w = random_weight(dtype, {n, k}, random);
        const auto prepared = backend_->prepare_weight(w.view());
        EXPECT_EQ(prepared->n(), n);
        EXPECT_EQ(prepared->k(), k);
        EXPECT_EQ(prepared->size_bytes(), backend_->prepared_weight_bytes(n, k, dtype)) << n << " x " << k;
        for (const int64_t rows : kRowCounts) {
          const Tensor x = random_tensor(activation(), {rows, k}, random);
          std::vector<double> expected;
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t j = 0; j < n; ++j) {
              double sum = 0.0;
              for (int64_t i = 0; i < k; ++i) sum += value(x.view(), r * k + i) * value(w.view(), j * k + i);
              expected.push_back(sum);
            }
          }
          expect_close(product(x.view(), *prepared).view(), expected, fp32_error() * std::sqrt(static_cast<double>(k)));
          if (HasFatalFailure()) FAIL() << rows << " rows, n " << n << ", k " << k << ", " << dtype_name(dtype);
        }
      }
    }
  }
}

TEST_P(LinearTest, ARowDoesNotSeeItsNeighbours) {
  Random random(6);
  for (const int64_t k : {100, 512}) {
    const Tensor w = random_tensor(DType::kBf16, {72, k}, random);
    const auto prepared = backend_->prepare_weight(w.view());
    const Tensor x = random_tensor(activation(), {70, k}, random);
    const Tensor alone = [&] {
      Tensor y(DType::kF32, {70, 72});
      for (int64_t r = 0; r < 70; ++r) ops().linear({.x = x.view().slice(r, 1), .w = prepared.get(), .y = y.view().slice(r, 1)});
      return y;
    }();
    for (const int64_t rows : {2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 70}) {
      for (const int64_t begin : {int64_t{0}, 70 - rows}) {
        const Tensor together = product(x.view().slice(begin, rows), *prepared);
        ASSERT_TRUE(bytes_equal(together.view(), alone.view().slice(begin, rows))) << rows << " rows from " << begin << ", k " << k;
      }
    }
  }
}

TEST_P(LinearTest, AddingAddsTheFinishedProductOnce) {
  Random random(7);
  const Tensor w = random_tensor(DType::kBf16, {40, 96}, random);
  const auto prepared = backend_->prepare_weight(w.view());
  for (const int64_t rows : kRowCounts) {
    const Tensor x = random_tensor(activation(), {rows, 96}, random);
    Tensor sum = random_tensor(DType::kF32, {rows, 40}, random, -10.0f, 10.0f);
    const Tensor before = to_f32(sum.view());
    const Tensor assigned = product(x.view(), *prepared);
    ops().linear({.x = x.view(), .w = prepared.get(), .y = sum.view(), .store = Store::kAdd});
    for (size_t i = 0; i < sum.span<float>().size(); ++i)
      ASSERT_EQ(sum.span<float>()[i], before.span<float>()[i] + assigned.span<float>()[i]);
  }
}

TEST_P(LinearTest, ThePreparedWeightOutlivesAMisalignedSource) {
  Random random(8);
  const Tensor w = random_weight(DType::kBf16, {24, 48}, random);
  std::vector<std::byte> bytes(w.view().size_bytes() + 1);
  std::memcpy(bytes.data() + 1, w.view().data, w.view().size_bytes());
  const auto prepared = backend_->prepare_weight({bytes.data() + 1, DType::kBf16, w.shape()});
  std::fill(bytes.begin(), bytes.end(), std::byte{0xFF});
  const Tensor x = random_tensor(activation(), {3, 48}, random);
  EXPECT_TRUE(bytes_equal(product(x.view(), *prepared).view(), product(x.view(), *backend_->prepare_weight(w.view())).view()));
}

ESPALIER_ON_ALL_BACKENDS(LinearTest);

}  // namespace
}  // namespace espalier::testing
