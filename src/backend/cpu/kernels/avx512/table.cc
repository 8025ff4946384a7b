// AVX-512 with BF16 products.
#include "backend/cpu/kernels/avx512/vec.h"
#include "backend/cpu/kernels/kernel_table.h"

namespace espalier::cpu {
namespace {

constexpr int kDeltaVectors = 4;

// clang-format off: each part uses those above it
#include "backend/cpu/kernels/shared/math.inc"
#include "backend/cpu/kernels/shared/row_kernels.inc"
#include "backend/cpu/kernels/avx512/operand.inc"
#include "backend/cpu/kernels/avx512/gemm.inc"
#include "backend/cpu/kernels/shared/attention.inc"
#include "backend/cpu/kernels/shared/delta_rule.inc"
#include "backend/cpu/kernels/shared/table.inc"
// clang-format on

constexpr KernelTable kTable = {
    .name = "avx512",
    .recipe = "VDPBF16PS, pairs of K ascending from 0",
    .operand_bytes = sizeof(uint16_t),
    .pack_rows = copy_pack_rows,
    .gemm = dot_gemm,
    ESPALIER_SHARED_KERNELS,
};

}  // namespace

const KernelTable& avx512_table() { return kTable; }

}  // namespace espalier::cpu
