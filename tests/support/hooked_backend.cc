#include "tests/support/hooked_backend.h"

#include <utility>

namespace espalier::testing {
namespace {

class HookedOps final : public Ops {
 public:
  HookedOps(Ops& inner, PassHook hook) : inner_(inner), hook_(std::move(hook)) {}

  void embed(const EmbedArgs& args) override {
    hook_(++pass_);
    inner_.embed(args);
  }
  void rms_norm(const RmsNormArgs& args) override { inner_.rms_norm(args); }
  void linear(const LinearArgs& args) override { inner_.linear(args); }
  void attention_input(const AttentionInputArgs& args) override { inner_.attention_input(args); }
  void attention(const AttentionArgs& args) override { inner_.attention(args); }
  void causal_conv(const CausalConvArgs& args) override { inner_.causal_conv(args); }
  void gated_delta_rule(const GatedDeltaRuleArgs& args) override { inner_.gated_delta_rule(args); }
  void gated_norm(const GatedNormArgs& args) override { inner_.gated_norm(args); }
  void silu_mul(const SiluMulArgs& args) override { inner_.silu_mul(args); }
  void gather_rows(const GatherRowsArgs& args) override { inner_.gather_rows(args); }
  void kv_compact(const KvCompactArgs& args) override { inner_.kv_compact(args); }
  void copy(const CopyArgs& args) override { inner_.copy(args); }

 private:
  Ops& inner_;
  PassHook hook_;
  int64_t pass_ = 0;
};

class HookedBackend final : public Backend {
 public:
  HookedBackend(std::unique_ptr<Backend> inner, PassHook hook) : inner_(std::move(inner)), ops_(inner_->ops(), std::move(hook)) {}

  std::string name() const override { return inner_->name(); }
  DType activation_dtype() const override { return inner_->activation_dtype(); }
  DType default_kv_dtype() const override { return inner_->default_kv_dtype(); }
  Status check(const ModelNeeds& needs) const override { return inner_->check(needs); }
  Result<std::unique_ptr<BackendMemory>> reserve(size_t bytes) override { return inner_->reserve(bytes); }
  std::unique_ptr<PreparedWeight> prepare_weight(const ConstTensorView& weight) override { return inner_->prepare_weight(weight); }
  size_t prepared_weight_bytes(int64_t n, int64_t k, DType dtype) const override { return inner_->prepared_weight_bytes(n, k, dtype); }
  Ops& ops() override { return ops_; }
  void synchronize() override { inner_->synchronize(); }

 private:
  std::unique_ptr<Backend> inner_;
  HookedOps ops_;
};

}  // namespace

std::unique_ptr<Backend> hook_passes(std::unique_ptr<Backend> backend, PassHook hook) {
  return std::make_unique<HookedBackend>(std::move(backend), std::move(hook));
}

}  // namespace espalier::testing
