// The multi-token prediction layer of a checkpoint: its weights, loaded and held. Source: model-spec 2.2, 4.
#pragma once

#include <memory>

#include "model/decoder_layer.h"

namespace espalier {

class MtpHead {
 public:
  static Result<MtpHead> load(WeightLoader& loader, const ModelConfig& config);

 private:
  std::unique_ptr<PreparedWeight> fc_;     // [hidden_size, 2 * hidden_size]: embedding first, then hidden
  const float* embedding_norm_ = nullptr;  // [hidden_size]
  const float* hidden_norm_ = nullptr;     // [hidden_size]
  const float* norm_ = nullptr;            // [hidden_size]
  DecoderLayer layer_;                     // gated attention with keys and values of its own
};

}  // namespace espalier
