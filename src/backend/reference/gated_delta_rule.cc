#include "ops/gated_delta_rule.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/reference/reference_ops.h"
#include "backend/reference/row_path.h"
#include "backend/reference/scalar_math.h"

namespace espalier {
namespace {

constexpr double kL2Eps = 1e-6;

// One token of one value head: advances S [dk, dv] and writes o [dv]. S is rounded to FP32 after each token, as it is kept.
void step(const GatedDeltaRuleArgs& args, int32_t row, int32_t head, float* state) {
  const StateLayout& layout = args.state.layout;
  const int32_t dk = layout.key_head_dim;
  const int32_t dv = layout.value_head_dim;
  const int32_t num_value_heads = layout.num_value_heads;
  const int32_t key_head = head / (num_value_heads / args.num_key_heads);
  const float* qkv = args.qkv.as<float>() + row * args.qkv.shape[1];
  const float* q = qkv + key_head * dk;
  const float* k = qkv + (args.num_key_heads + key_head) * dk;
  const float* v = qkv + 2 * args.num_key_heads * dk + head * dv;
  float* o = args.o.as<float>() + row * args.o.shape[1] + head * dv;

  const double a = args.a.as<float>()[row * num_value_heads + head];
  const double b = args.b.as<float>()[row * num_value_heads + head];
  const double beta = sigmoid(b);
  const double decay = std::exp(-std::exp(static_cast<double>(args.a_log[head])) * softplus(a + args.dt_bias[head]));
  const double q_scale = 1.0 / std::sqrt(sum_of_squares(q, dk) + kL2Eps) / std::sqrt(static_cast<double>(dk));
  const double k_scale = 1.0 / std::sqrt(sum_of_squares(k, dk) + kL2Eps);

  std::vector<double> recalled(static_cast<size_t>(dv), 0.0), out(static_cast<size_t>(dv), 0.0);
  for (int32_t i = 0; i < dk; ++i) {
    for (int32_t j = 0; j < dv; ++j) recalled[static_cast<size_t>(j)] += decay * state[i * dv + j] * (k[i] * k_scale);
  }
  for (int32_t i = 0; i < dk; ++i) {
    for (int32_t j = 0; j < dv; ++j) {
      const double delta = beta * (v[j] - recalled[static_cast<size_t>(j)]);
      state[i * dv + j] = static_cast<float>(decay * state[i * dv + j] + k[i] * k_scale * delta);
      out[static_cast<size_t>(j)] += static_cast<double>(state[i * dv + j]) * (q[i] * q_scale);
    }
  }
  for (int32_t j = 0; j < dv; ++j) o[j] = static_cast<float>(out[static_cast<size_t>(j)]);
}

}  // namespace

void ReferenceOps::gated_delta_rule(const GatedDeltaRuleArgs& args) {
  const BatchView& batch = *args.batch;
  const StateLayout& layout = args.state.layout;
  const size_t head_size = static_cast<size_t>(layout.key_head_dim) * static_cast<size_t>(layout.value_head_dim);
  std::vector<float> state(head_size);
  for (int32_t s = 0; s < batch.num_sequences; ++s) {
    const SequenceView& sequence = batch.sequences[s];
    for (int32_t head = 0; head < layout.num_value_heads; ++head) {
      float* committed = args.state.recurrent(sequence.state_slot, args.layer) + static_cast<size_t>(head) * head_size;
      if (sequence.keep == Keep::kNone) {
        // Each node replays the path from the root: short, and plainly what the contract says.
        for (int32_t r = sequence.row_begin; r < sequence.row_begin + sequence.num_rows; ++r) {
          std::copy_n(committed, head_size, state.begin());
          for (const int32_t ancestor : row_path(batch, r)) step(args, ancestor, head, state.data());
        }
        continue;
      }
      for (int32_t r = sequence.row_begin; r < sequence.row_begin + sequence.num_rows; ++r) {
        step(args, r, head, committed);
        for (int32_t i = 0; i < batch.num_captures; ++i) {
          if (batch.capture_row[i] != r) continue;
          std::copy_n(committed, head_size,
                      args.state.recurrent(batch.capture_slot[i], args.layer) + static_cast<size_t>(head) * head_size);
        }
      }
    }
  }
}

}  // namespace espalier
