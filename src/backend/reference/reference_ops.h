// The ops of the reference backend, one file each: scalar, FP32 values in and out, sums in double.
#pragma once

#include "ops/ops.h"

namespace espalier {

class ReferenceOps final : public Ops {
 public:
  void embed(const EmbedArgs& args) override;
  void rms_norm(const RmsNormArgs& args) override;
  void linear(const LinearArgs& args) override;
  void attention_input(const AttentionInputArgs& args) override;
  void attention(const AttentionArgs& args) override;
  void causal_conv(const CausalConvArgs& args) override;
  void gated_delta_rule(const GatedDeltaRuleArgs& args) override;
  void gated_norm(const GatedNormArgs& args) override;
  void silu_mul(const SiluMulArgs& args) override;
  void gather_rows(const GatherRowsArgs& args) override;
  void kv_compact(const KvCompactArgs& args) override;
  void copy(const CopyArgs& args) override;
};

}  // namespace espalier
