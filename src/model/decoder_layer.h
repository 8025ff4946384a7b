// One layer: a mixer and a feed-forward block, each behind a norm and added to the residual stream. Source: model-spec 3.2.
#pragma once

#include <string>
#include <variant>

#include "model/gated_attention.h"
#include "model/gated_delta_net.h"
#include "model/mlp.h"

namespace espalier {

class DecoderLayer {
 public:
  // `index_of_kind`: its place among the layers with the same kind of mixer.
  static Result<DecoderLayer> load(WeightLoader& loader, const ModelConfig& config, const std::string& prefix, LayerKind kind,
                                   int32_t index_of_kind);

  void forward(ForwardContext& c) const;
  // Null for a layer of attention.
  const GatedDeltaNet* delta_net() const { return std::get_if<GatedDeltaNet>(&mixer_); }

 private:
  const float* input_norm_ = nullptr;           // [hidden_size]
  const float* post_attention_norm_ = nullptr;  // [hidden_size]
  std::variant<GatedAttention, GatedDeltaNet> mixer_;
  Mlp feed_forward_;
  float eps_ = 0.0f;
};

}  // namespace espalier
