// The dense feed-forward block: down(silu(gate(x)) * up(x)), added to the residual stream. Source: model-spec 3.2.
#pragma once

#include <memory>
#include <string>

#include "model/forward_context.h"
#include "model/weight_loader.h"

namespace espalier {

class Mlp {
 public:
  static Result<Mlp> load(WeightLoader& loader, const std::string& prefix);
  void forward(ForwardContext& c) const;

 private:
  std::unique_ptr<PreparedWeight> gate_proj_;  // [intermediate_size, hidden_size]
  std::unique_ptr<PreparedWeight> up_proj_;    // [intermediate_size, hidden_size]
  std::unique_ptr<PreparedWeight> down_proj_;  // [hidden_size, intermediate_size]
};

}  // namespace espalier
