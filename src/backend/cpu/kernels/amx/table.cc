// AMX tiles for products, AVX-512 for the rest; and the same table with the tiles' arithmetic in FP32.
#include "backend/cpu/kernels/avx512/vec.h"
#include "backend/cpu/kernels/kernel_table.h"

namespace espalier::cpu {
namespace {

constexpr int kDeltaVectors = 4;

// clang-format off: each part uses those above it
#include "backend/cpu/kernels/shared/math.inc"
#include "backend/cpu/kernels/shared/row_kernels.inc"
#include "backend/cpu/kernels/avx512/operand.inc"
#include "backend/cpu/kernels/amx/tiles.inc"
#include "backend/cpu/kernels/amx/gemm.inc"
#include "backend/cpu/kernels/shared/attention.inc"
#include "backend/cpu/kernels/shared/delta_rule.inc"
#include "backend/cpu/kernels/shared/table.inc"
// clang-format on

template <class Tiles>
constexpr KernelTable make_table(const char* name) {
  return {
      .name = name,
      .recipe = "TDPBF16PS, 32 of K at a time, ascending from 0",
      .operand_bytes = sizeof(uint16_t),
      .pack_rows = copy_pack_rows,
      .gemm = tile_gemm<Tiles>,
      ESPALIER_SHARED_KERNELS,
  };
}

constexpr KernelTable kTable = make_table<HardwareTiles>("amx");
constexpr KernelTable kTwinTable = make_table<TwinTiles>("amx-twin");

}  // namespace

const KernelTable& amx_table() { return kTable; }
const KernelTable& amx_twin_table() { return kTwinTable; }

}  // namespace espalier::cpu
