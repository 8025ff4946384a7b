// Products with a prepared weight matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/tensor.h"

namespace espalier {

// A weight matrix [n, k] in a backend's private layout; made by Backend::prepare_weight, immutable, used by its own backend only.
class PreparedWeight {
 public:
  PreparedWeight(int64_t n, int64_t k) : n_(n), k_(k) {}
  virtual ~PreparedWeight() = default;
  PreparedWeight(const PreparedWeight&) = delete;
  PreparedWeight& operator=(const PreparedWeight&) = delete;

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  virtual size_t size_bytes() const = 0;  // memory held by this object

 private:
  int64_t n_, k_;
};

enum class Store {
  kAssign,  // y = x w^T
  kAdd,     // y = y + x w^T: the product is summed first, then added once
};

// y[r, n] = sum_k x[r, k] * w[n, k]; K summed in the table's one fixed order for every number of rows (a row is a row).
// Each y row depends on its x row alone. x and y do not overlap.
struct LinearArgs {
  ConstTensorView x;        // [rows, k] activation dtype
  const PreparedWeight* w;  // [n, k]
  TensorView y;             // [rows, n] F32
  Store store = Store::kAssign;
};

}  // namespace espalier
