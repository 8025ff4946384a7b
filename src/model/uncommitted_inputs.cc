#include "model/uncommitted_inputs.h"

#include <algorithm>

namespace espalier {

void UncommittedInputs::lay_out(BackendArena& arena, const ModelConfig& config, int32_t max_rows) {
  layers_.clear();
  for (int32_t i = 0; i < config.num_linear_layers(); ++i) {
    layers_.push_back({.u = arena.take(DType::kF32, {max_rows, config.conv_dim()}),
                       .a = arena.take(DType::kF32, {max_rows, config.linear_num_value_heads}),
                       .b = arena.take(DType::kF32, {max_rows, config.linear_num_value_heads})});
  }
  size_bytes_ = arena.used_bytes();
}

Result<UncommittedInputs> UncommittedInputs::allocate(Backend& backend, const ModelConfig& config, int32_t max_rows) {
  UncommittedInputs inputs;
  BackendArena counting;
  inputs.lay_out(counting, config, max_rows);
  ESPALIER_ASSIGN(inputs.arena_, BackendArena::reserve(backend, inputs.size_bytes_));
  inputs.lay_out(inputs.arena_, config, max_rows);
  inputs.max_rows_ = max_rows;
  inputs.rows_.reserve(static_cast<size_t>(max_rows));
  return inputs;
}

void UncommittedInputs::begin_pass(const BatchView& batch) {
  rows_.clear();
  for (int32_t s = 0; s < batch.num_sequences; ++s) {
    const SequenceView& sequence = batch.sequences[s];
    if (sequence.keep == Keep::kAll) continue;
    ESPALIER_CHECK(static_cast<int32_t>(rows_.size()) + sequence.num_rows <= max_rows_);
    for (int32_t r = 0; r < sequence.num_rows; ++r) rows_.push_back(sequence.row_begin + r);
  }
}

int32_t UncommittedInputs::place_of(int32_t row) const {
  const auto found = std::lower_bound(rows_.begin(), rows_.end(), row);
  ESPALIER_CHECK(found != rows_.end() && *found == row);
  return static_cast<int32_t>(found - rows_.begin());
}

}  // namespace espalier
