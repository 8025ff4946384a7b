#include "model/mlp.h"

namespace espalier {

Result<Mlp> Mlp::load(WeightLoader& loader, const std::string& prefix) {
  Mlp mlp;
  ESPALIER_ASSIGN(mlp.gate_proj_, loader.matrix(prefix + "gate_proj.weight"));
  ESPALIER_ASSIGN(mlp.up_proj_, loader.matrix(prefix + "up_proj.weight"));
  ESPALIER_ASSIGN(mlp.down_proj_, loader.matrix(prefix + "down_proj.weight"));
  return mlp;
}

void Mlp::forward(ForwardContext& c) const {
  c.ops.linear({.x = c.act.normed, .w = gate_proj_.get(), .y = c.act.gate});
  c.ops.linear({.x = c.act.normed, .w = up_proj_.get(), .y = c.act.up});
  c.ops.silu_mul({.gate = c.act.gate, .up = c.act.up, .y = c.act.gated});
  c.ops.linear({.x = c.act.gated, .w = down_proj_.get(), .y = c.act.hidden, .store = Store::kAdd});
}

}  // namespace espalier
