// The abstract set of operations. One op = one contract header = one file of that name in each backend. Ops only enqueue: no
// allocation, no synchronisation, nothing read back; a CPU backend runs them at once. Called by one thread at a time.
#pragma once

#include "ops/attention.h"
#include "ops/attention_input.h"
#include "ops/causal_conv.h"
#include "ops/copy.h"
#include "ops/embed.h"
#include "ops/gated_delta_rule.h"
#include "ops/gated_norm.h"
#include "ops/gather_rows.h"
#include "ops/kv_compact.h"
#include "ops/linear.h"
#include "ops/rms_norm.h"
#include "ops/silu_mul.h"

namespace espalier {

class Ops {
 public:
  virtual ~Ops() = default;

  virtual void embed(const EmbedArgs& args) = 0;
  virtual void rms_norm(const RmsNormArgs& args) = 0;
  virtual void linear(const LinearArgs& args) = 0;
  virtual void attention_input(const AttentionInputArgs& args) = 0;
  virtual void attention(const AttentionArgs& args) = 0;
  virtual void causal_conv(const CausalConvArgs& args) = 0;
  virtual void gated_delta_rule(const GatedDeltaRuleArgs& args) = 0;
  virtual void gated_norm(const GatedNormArgs& args) = 0;
  virtual void silu_mul(const SiluMulArgs& args) = 0;
  virtual void gather_rows(const GatherRowsArgs& args) = 0;
  virtual void kv_compact(const KvCompactArgs& args) = 0;
  virtual void copy(const CopyArgs& args) = 0;
};

}  // namespace espalier
