// Full attention with partial rotary embedding and an output gate, added to the residual stream. Source: model-spec 3.5.
#pragma once

#include <memory>
#include <string>

#include "model/forward_context.h"
#include "model/weight_loader.h"

namespace espalier {

class GatedAttention {
 public:
  // `kv_layer`: its place among the full-attention layers.
  static Result<GatedAttention> load(WeightLoader& loader, const ModelConfig& config, const std::string& prefix, int32_t kv_layer);
  void forward(ForwardContext& c) const;

 private:
  std::unique_ptr<PreparedWeight> q_proj_;  // [num_heads * 2 * head_dim, hidden_size]: each head's query, then its gate
  std::unique_ptr<PreparedWeight> k_proj_;  // [num_kv_heads * head_dim, hidden_size]
  std::unique_ptr<PreparedWeight> v_proj_;  // [num_kv_heads * head_dim, hidden_size]
  std::unique_ptr<PreparedWeight> o_proj_;  // [hidden_size, num_heads * head_dim]
  const float* q_norm_ = nullptr;           // [head_dim]
  const float* k_norm_ = nullptr;           // [head_dim]
  RotaryParams rotary_;
  float eps_ = 0.0f;
  float scale_ = 0.0f;  // 1 / sqrt(head_dim)
  int32_t kv_layer_ = 0;
};

}  // namespace espalier
