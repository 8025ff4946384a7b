// Copies chosen rows, as bytes.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace espalier {

// y[i, :] = x[rows[i], :]; same dtype and row length. x and y do not overlap.
struct GatherRowsArgs {
  ConstTensorView x;
  const int32_t* rows;  // [num_rows], backend memory
  int32_t num_rows;
  TensorView y;         // at least num_rows rows
};

}  // namespace espalier
