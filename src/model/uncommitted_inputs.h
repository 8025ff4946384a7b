// What a commit needs of the rows of Keep::kNone sequences: each Gated DeltaNet layer's inputs, kept until the next pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/model_config.h"
#include "model/backend_arena.h"
#include "ops/batch_view.h"
#include "tensor/tensor.h"

namespace espalier {

// Inputs of the convolution and of the recurrence's gates, [max_rows, ...] F32, one row for each uncommitted row of the pass.
struct DeltaInputs {
  TensorView u;  // [max_rows, conv_dim]
  TensorView a;  // [max_rows, num_value_heads]
  TensorView b;  // [max_rows, num_value_heads]
};

class UncommittedInputs {
 public:
  static Result<UncommittedInputs> allocate(Backend& backend, const ModelConfig& config, int32_t max_rows);

  // Notes which rows of the pass will need a commit: those of Keep::kNone sequences.
  void begin_pass(const BatchView& batch);
  std::span<const int32_t> rows() const { return rows_; }  // rows of the pass, ascending
  int32_t place_of(int32_t row) const;                     // where a row of the pass is kept
  const DeltaInputs& layer(int32_t index) const { return layers_[static_cast<size_t>(index)]; }
  size_t size_bytes() const { return size_bytes_; }

 private:
  void lay_out(BackendArena& arena, const ModelConfig& config, int32_t max_rows);

  BackendArena arena_;
  size_t size_bytes_ = 0;
  int32_t max_rows_ = 0;
  std::vector<DeltaInputs> layers_;
  std::vector<int32_t> rows_;
};

}  // namespace espalier
