#include "ops/causal_conv.h"

#include <algorithm>
#include <vector>

#include "backend/reference/reference_ops.h"
#include "backend/reference/row_path.h"
#include "backend/reference/scalar_math.h"

namespace espalier {
namespace {

// The last `count` inputs up to and including row `row`, oldest first: rows of its path, before them the sequence's kept inputs.
std::vector<const float*> window_of(const CausalConvArgs& args, int32_t row, int32_t count) {
  const BatchView& batch = *args.batch;
  const int64_t channels = args.u.shape[1];
  const int32_t num_kept = args.state.layout.conv_kernel - 1;
  const auto* kept = reinterpret_cast<const float*>(args.state.conv(batch.sequences[batch.row_sequence[row]].state_slot, args.layer));
  std::vector<const float*> inputs;
  for (int32_t j = 0; j < num_kept; ++j) inputs.push_back(kept + j * channels);
  for (const int32_t r : row_path(batch, row)) inputs.push_back(args.u.as<float>() + r * channels);
  return {inputs.end() - count, inputs.end()};
}

void keep_inputs_after(const CausalConvArgs& args, int32_t row, int32_t slot) {
  const int64_t channels = args.u.shape[1];
  const int32_t num_kept = args.state.layout.conv_kernel - 1;
  std::vector<float> kept;  // gathered first: the source may be the slot itself
  for (const float* input : window_of(args, row, num_kept)) kept.insert(kept.end(), input, input + channels);
  std::copy(kept.begin(), kept.end(), reinterpret_cast<float*>(args.state.conv(slot, args.layer)));
}

}  // namespace

void ReferenceOps::causal_conv(const CausalConvArgs& args) {
  const BatchView& batch = *args.batch;
  const int64_t channels = args.u.shape[1];
  const int32_t kernel = args.state.layout.conv_kernel;
  for (int32_t r = 0; r < batch.num_rows; ++r) {
    const std::vector<const float*> window = window_of(args, r, kernel);
    float* y = args.y.as<float>() + r * channels;
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0.0;
      for (int32_t j = 0; j < kernel; ++j) sum += static_cast<double>(args.weight[c * kernel + j]) * window[static_cast<size_t>(j)][c];
      y[c] = static_cast<float>(silu(sum));
    }
  }
  for (int32_t i = 0; i < batch.num_captures; ++i) keep_inputs_after(args, batch.capture_row[i], batch.capture_slot[i]);
  for (int32_t s = 0; s < batch.num_sequences; ++s) {
    const SequenceView& sequence = batch.sequences[s];
    if (sequence.keep == Keep::kAll) keep_inputs_after(args, sequence.row_begin + sequence.num_rows - 1, sequence.state_slot);
  }
}

}  // namespace espalier
