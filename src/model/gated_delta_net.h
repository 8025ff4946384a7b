// Gated DeltaNet: convolution, recurrence with a matrix state, gated norm; added to the residual stream. Source: model-spec 3.3.
#pragma once

#include <memory>
#include <string>

#include "model/forward_context.h"
#include "model/weight_loader.h"

namespace espalier {

class GatedDeltaNet {
 public:
  // `state_layer`: its place among the Gated DeltaNet layers.
  static Result<GatedDeltaNet> load(WeightLoader& loader, const ModelConfig& config, const std::string& prefix, int32_t state_layer);

  void forward(ForwardContext& c) const;
  // Advances states by rows of an earlier pass: `c.batch` holds the accepted rows as chains to be kept, `places` where their inputs
  // are in c.uncommitted. The same ops on the same inputs as decoding them one by one.
  void commit(ForwardContext& c, std::span<const int32_t> places) const;

 private:
  void advance(ForwardContext& c) const;  // u, a, b -> delta

  std::unique_ptr<PreparedWeight> in_proj_qkv_;  // [conv_dim, hidden_size]
  std::unique_ptr<PreparedWeight> in_proj_z_;    // [value_dim, hidden_size]
  std::unique_ptr<PreparedWeight> in_proj_b_;    // [num_value_heads, hidden_size]
  std::unique_ptr<PreparedWeight> in_proj_a_;    // [num_value_heads, hidden_size]
  std::unique_ptr<PreparedWeight> out_proj_;     // [hidden_size, value_dim]
  const float* conv_ = nullptr;                  // [conv_dim, conv_kernel]
  const float* a_log_ = nullptr;                 // [num_value_heads]
  const float* dt_bias_ = nullptr;               // [num_value_heads]
  const float* norm_ = nullptr;                  // [value_head_dim]
  float eps_ = 0.0f;
  int32_t num_key_heads_ = 0;
  int32_t state_layer_ = 0;
};

}  // namespace espalier
