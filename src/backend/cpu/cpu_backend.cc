#include "backend/cpu/cpu_backend.h"

#include <cstdlib>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/packed_weight.h"
#include "backend/host_memory.h"
#include "base/cpu_features.h"
#include "base/format.h"

namespace espalier {
namespace cpu {
namespace {

Status check_multiple(const char* what, int32_t value, int32_t step, int32_t most) {
  if (value == 0 || (value > 0 && value % step == 0 && value <= most)) return Ok{};
  return make_error(ErrorCode::kUnsupported, "cpu backend: {} {}: expected a multiple of {} up to {}", what, value, step, most);
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const KernelTable& table, int num_threads) : ops_(table, num_threads) {}

  std::string name() const override { return format("cpu ({})", ops_.table().name); }
  DType activation_dtype() const override { return DType::kBf16; }
  DType default_kv_dtype() const override { return DType::kBf16; }

  Status check(const ModelNeeds& needs) const override {
    if (needs.weight_dtype != DType::kBf16 && needs.weight_dtype != DType::kF16 && needs.weight_dtype != DType::kF32) {
      return make_error(ErrorCode::kUnsupported, "cpu backend: weights of type {}: expected BF16, F16 or F32",
                        dtype_name(needs.weight_dtype));
    }
    if (needs.kv_dtype != DType::kBf16) {
      return make_error(ErrorCode::kUnsupported, "cpu backend: keys and values of type {}: expected BF16", dtype_name(needs.kv_dtype));
    }
    if (needs.conv_kernel < 0 || needs.conv_kernel > kMaxConvKernel) {
      return make_error(ErrorCode::kUnsupported, "cpu backend: a convolution over {} inputs: expected at most {}", needs.conv_kernel,
                        kMaxConvKernel);
    }
    ESPALIER_TRY(check_multiple("attention head size", needs.head_dim, kPackedK, 512));
    ESPALIER_TRY(check_multiple("Gated DeltaNet key head size", needs.key_head_dim, kSlab, 256));
    return check_multiple("Gated DeltaNet value head size", needs.value_head_dim, kSlab, 256);
  }

  Result<std::unique_ptr<BackendMemory>> reserve(size_t bytes) override { return reserve_host_memory(bytes); }
  std::unique_ptr<PreparedWeight> prepare_weight(const ConstTensorView& weight) override {
    return std::make_unique<PackedWeight>(weight, ops_.pool());
  }
  size_t prepared_weight_bytes(int64_t n, int64_t k, DType) const override { return PackedWeight::packed_bytes(n, k); }

  Ops& ops() override { return ops_; }
  void synchronize() override {}

 private:
  CpuOps ops_;
};

}  // namespace
}  // namespace cpu

Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options) {
  const char* forced = std::getenv("ESPALIER_ISA");
  std::string isa = options.isa;
  if (isa.empty() && forced != nullptr) isa = forced;
  ESPALIER_ASSIGN(const cpu::KernelTable* table, cpu::choose_table(isa));
  const int threads = options.threads > 0 ? options.threads : physical_cores();
  return std::unique_ptr<Backend>(std::make_unique<cpu::CpuBackend>(*table, threads));
}

}  // namespace espalier
