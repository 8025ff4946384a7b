#include "model/decoder_layer.h"

namespace espalier {

Result<DecoderLayer> DecoderLayer::load(WeightLoader& loader, const ModelConfig& config, const std::string& prefix, LayerKind kind,
                                        int32_t index_of_kind) {
  DecoderLayer layer;
  if (kind == LayerKind::kFullAttention) {
    ESPALIER_ASSIGN(layer.mixer_, GatedAttention::load(loader, config, prefix + "self_attn.", index_of_kind));
  } else {
    ESPALIER_ASSIGN(layer.mixer_, GatedDeltaNet::load(loader, config, prefix + "linear_attn.", index_of_kind));
  }
  ESPALIER_ASSIGN(layer.feed_forward_, Mlp::load(loader, prefix + "mlp."));
  ESPALIER_ASSIGN(layer.input_norm_, loader.vector(prefix + "input_layernorm.weight"));
  ESPALIER_ASSIGN(layer.post_attention_norm_, loader.vector(prefix + "post_attention_layernorm.weight"));
  layer.eps_ = static_cast<float>(config.rms_norm_eps);
  return layer;
}

void DecoderLayer::forward(ForwardContext& c) const {
  c.ops.rms_norm({.x = c.act.hidden, .weight = input_norm_, .eps = eps_, .y = c.act.normed});
  std::visit([&](const auto& mixer) { mixer.forward(c); }, mixer_);
  c.ops.rms_norm({.x = c.act.hidden, .weight = post_attention_norm_, .eps = eps_, .y = c.act.normed});
  feed_forward_.forward(c);
}

}  // namespace espalier
