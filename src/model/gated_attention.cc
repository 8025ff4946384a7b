#include "model/gated_attention.h"

#include <cmath>

namespace espalier {

Result<GatedAttention> GatedAttention::load(WeightLoader& loader, const ModelConfig& config, const std::string& prefix, int32_t kv_layer) {
  GatedAttention attention;
  ESPALIER_ASSIGN(attention.q_proj_, loader.matrix(prefix + "q_proj.weight"));
  ESPALIER_ASSIGN(attention.k_proj_, loader.matrix(prefix + "k_proj.weight"));
  ESPALIER_ASSIGN(attention.v_proj_, loader.matrix(prefix + "v_proj.weight"));
  ESPALIER_ASSIGN(attention.o_proj_, loader.matrix(prefix + "o_proj.weight"));
  ESPALIER_ASSIGN(attention.q_norm_, loader.vector(prefix + "q_norm.weight"));
  ESPALIER_ASSIGN(attention.k_norm_, loader.vector(prefix + "k_norm.weight"));
  attention.rotary_ = {.rotary_dim = config.rotary_dim, .theta = config.rope_theta, .mrope_section = config.mrope_section};
  attention.eps_ = static_cast<float>(config.rms_norm_eps);
  attention.scale_ = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  attention.kv_layer_ = kv_layer;
  return attention;
}

void GatedAttention::forward(ForwardContext& c) const {
  c.ops.linear({.x = c.act.normed, .w = q_proj_.get(), .y = flattened(c.act.q_gate)});
  c.ops.linear({.x = c.act.normed, .w = k_proj_.get(), .y = flattened(c.act.k)});
  c.ops.linear({.x = c.act.normed, .w = v_proj_.get(), .y = flattened(c.act.v)});
  c.ops.attention_input({.batch = &c.batch,
                         .q_gate = c.act.q_gate,
                         .k = c.act.k,
                         .v = c.act.v,
                         .q_norm = q_norm_,
                         .k_norm = k_norm_,
                         .eps = eps_,
                         .rotary = rotary_,
                         .kv = c.kv,
                         .layer = kv_layer_,
                         .q = c.act.q});
  c.ops.attention(
      {.batch = &c.batch, .q = c.act.q, .q_gate = c.act.q_gate, .kv = c.kv, .layer = kv_layer_, .scale = scale_, .y = c.act.attention});
  c.ops.linear({.x = c.act.attention, .w = o_proj_.get(), .y = c.act.hidden, .store = Store::kAdd});
}

}  // namespace espalier
