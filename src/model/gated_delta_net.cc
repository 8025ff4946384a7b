#include "model/gated_delta_net.h"

namespace espalier {

Result<GatedDeltaNet> GatedDeltaNet::load(WeightLoader& loader, const ModelConfig& config, const std::string& prefix, int32_t state_layer) {
  GatedDeltaNet net;
  ESPALIER_ASSIGN(net.in_proj_qkv_, loader.matrix(prefix + "in_proj_qkv.weight"));
  ESPALIER_ASSIGN(net.in_proj_z_, loader.matrix(prefix + "in_proj_z.weight"));
  ESPALIER_ASSIGN(net.in_proj_b_, loader.matrix(prefix + "in_proj_b.weight"));
  ESPALIER_ASSIGN(net.in_proj_a_, loader.matrix(prefix + "in_proj_a.weight"));
  ESPALIER_ASSIGN(net.out_proj_, loader.matrix(prefix + "out_proj.weight"));
  ESPALIER_ASSIGN(net.conv_, loader.vector(prefix + "conv1d.weight"));
  ESPALIER_ASSIGN(net.a_log_, loader.vector(prefix + "A_log"));
  ESPALIER_ASSIGN(net.dt_bias_, loader.vector(prefix + "dt_bias"));
  ESPALIER_ASSIGN(net.norm_, loader.vector(prefix + "norm.weight"));
  net.eps_ = static_cast<float>(config.rms_norm_eps);
  net.num_key_heads_ = config.linear_num_key_heads;
  net.state_layer_ = state_layer;
  return net;
}

void GatedDeltaNet::forward(ForwardContext& c) const {
  c.ops.linear({.x = c.act.normed, .w = in_proj_qkv_.get(), .y = c.act.u});
  c.ops.linear({.x = c.act.normed, .w = in_proj_z_.get(), .y = flattened(c.act.z)});
  c.ops.linear({.x = c.act.normed, .w = in_proj_b_.get(), .y = c.act.b});
  c.ops.linear({.x = c.act.normed, .w = in_proj_a_.get(), .y = c.act.a});
  if (const auto rows = c.uncommitted.rows(); !rows.empty()) {
    const DeltaInputs& kept = c.uncommitted.layer(state_layer_);
    const auto count = static_cast<int32_t>(rows.size());
    c.ops.gather_rows({.x = c.act.u, .rows = rows.data(), .num_rows = count, .y = kept.u});
    c.ops.gather_rows({.x = c.act.a, .rows = rows.data(), .num_rows = count, .y = kept.a});
    c.ops.gather_rows({.x = c.act.b, .rows = rows.data(), .num_rows = count, .y = kept.b});
  }
  advance(c);
  c.ops.gated_norm({.o = c.act.delta, .z = c.act.z, .weight = norm_, .eps = eps_, .y = c.act.mixed});
  c.ops.linear({.x = flattened(c.act.mixed), .w = out_proj_.get(), .y = c.act.hidden, .store = Store::kAdd});
}

void GatedDeltaNet::commit(ForwardContext& c, std::span<const int32_t> places) const {
  const DeltaInputs& kept = c.uncommitted.layer(state_layer_);
  const auto count = static_cast<int32_t>(places.size());
  c.ops.gather_rows({.x = kept.u, .rows = places.data(), .num_rows = count, .y = c.act.u});
  c.ops.gather_rows({.x = kept.a, .rows = places.data(), .num_rows = count, .y = c.act.a});
  c.ops.gather_rows({.x = kept.b, .rows = places.data(), .num_rows = count, .y = c.act.b});
  advance(c);
}

void GatedDeltaNet::advance(ForwardContext& c) const {
  c.ops.causal_conv({.batch = &c.batch, .u = c.act.u, .weight = conv_, .state = c.state, .layer = state_layer_, .y = c.act.qkv});
  c.ops.gated_delta_rule({.batch = &c.batch,
                          .qkv = c.act.qkv,
                          .a = c.act.a,
                          .b = c.act.b,
                          .a_log = a_log_,
                          .dt_bias = dt_bias_,
                          .num_key_heads = num_key_heads_,
                          .state = c.state,
                          .layer = state_layer_,
                          .o = flattened(c.act.delta)});
}

}  // namespace espalier
