#include "backend/reference/reference_backend.h"

#include "backend/host_memory.h"
#include "backend/reference/reference_ops.h"
#include "backend/reference/reference_weight.h"
#include "base/format.h"

namespace espalier {
namespace {

class ReferenceBackend final : public Backend {
 public:
  std::string name() const override { return "reference"; }
  DType activation_dtype() const override { return DType::kF32; }
  DType default_kv_dtype() const override { return DType::kF32; }

  Status check(const ModelNeeds& needs) const override {
    for (const DType dtype : {needs.weight_dtype, needs.kv_dtype}) {
      if (dtype != DType::kF32 && dtype != DType::kBf16 && dtype != DType::kF16 && dtype != DType::kF8E4M3) {
        return make_error(ErrorCode::kUnsupported, "reference backend: weights and KV of type {} are not supported", dtype_name(dtype));
      }
    }
    return Ok{};
  }

  Result<std::unique_ptr<BackendMemory>> reserve(size_t bytes) override { return reserve_host_memory(bytes); }

  std::unique_ptr<PreparedWeight> prepare_weight(const ConstTensorView& weight) override {
    return std::make_unique<ReferenceWeight>(weight);
  }
  size_t prepared_weight_bytes(int64_t n, int64_t k, DType) const override {
    return static_cast<size_t>(n) * static_cast<size_t>(k) * sizeof(float);
  }

  Ops& ops() override { return ops_; }
  void synchronize() override {}

 private:
  ReferenceOps ops_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace espalier
