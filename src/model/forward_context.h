// What a layer sees of the pass it runs in.
#pragma once

#include "model/activations.h"
#include "model/uncommitted_inputs.h"
#include "ops/kv_layout.h"
#include "ops/ops.h"
#include "ops/state_layout.h"

namespace espalier {

struct ForwardContext {
  Ops& ops;
  const BatchView& batch;
  KvView kv;
  StateView state;
  ActivationViews act;  // the rows of this pass
  const UncommittedInputs& uncommitted;
};

}  // namespace espalier
