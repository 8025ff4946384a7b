// Armv8.2 Advanced SIMD: products of FP32, packed BF16 widened on load.
#include "backend/cpu/kernels/kernel_table.h"
#include "backend/cpu/kernels/neon/vec.h"

namespace espalier::cpu {
namespace {

constexpr int kWidenRows = 5;    // x 4 vectors = 20 accumulators of 32 registers
constexpr int kWidenPanels = 2;  // one row: 8 accumulators
constexpr int kDeltaVectors = 4;

// clang-format off: each part uses those above it
#include "backend/cpu/kernels/shared/math.inc"
#include "backend/cpu/kernels/shared/row_kernels.inc"
#include "backend/cpu/kernels/shared/gemm_widen.inc"
#include "backend/cpu/kernels/shared/attention.inc"
#include "backend/cpu/kernels/shared/delta_rule.inc"
#include "backend/cpu/kernels/shared/table.inc"
// clang-format on

constexpr KernelTable kTable = {
    .name = "neon",
    .recipe = "FP32 FMA, K ascending from 0",
    .operand_bytes = sizeof(float),
    .pack_rows = widen_pack_rows,
    .gemm = widen_gemm,
    ESPALIER_SHARED_KERNELS,
};

}  // namespace

const KernelTable& neon_table() { return kTable; }

}  // namespace espalier::cpu
