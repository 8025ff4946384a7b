#include "ops/linear.h"

#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/packed_weight.h"

namespace espalier::cpu {
namespace {

constexpr int64_t kGroupPanels = 4;  // outputs of one piece of work: what the kernels walk side by side
constexpr int64_t kBlockRows = 192;  // rows of one: many tiles of every table's height, few enough to share out

}  // namespace

void CpuOps::linear(const LinearArgs& args) {
  const ScopedFloatMode mode;
  const auto& w = static_cast<const PackedWeight&>(*args.w);
  const int64_t rows = args.x.rows(), k = w.k(), n = w.n(), padded = PackedWeight::padded(k);

  const void* operand = args.x.data;
  if (table_.operand_bytes != sizeof(uint16_t) || padded != k) {
    auto* packed = shared_[0].get<std::byte>(rows * padded * static_cast<int64_t>(table_.operand_bytes));
    const auto* x = args.x.as<uint16_t>();
    for_ranges(rows, std::max<int64_t>(1, 16384 / padded), [&](int64_t begin, int64_t end, int) {
      table_.pack_rows(x + begin * k, k, end - begin, k, padded, packed + static_cast<size_t>(begin * padded) * table_.operand_bytes);
    });
    operand = packed;
  }

  const int64_t groups = (PackedWeight::num_panels(n) + kGroupPanels - 1) / kGroupPanels;
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  auto* y = args.y.as<float>();
  // All blocks of a group follow one another: its panels are read from memory once.
  pool_.parallel_for(groups * blocks, [&](int64_t chunk, int) {
    const int64_t panel = chunk / blocks * kGroupPanels, row = chunk % blocks * kBlockRows;
    const int64_t column = panel * kPanelRows;
    table_.gemm({.a = static_cast<const std::byte*>(operand) + static_cast<size_t>(row * padded) * table_.operand_bytes,
                 .a_stride = padded,
                 .rows = std::min(kBlockRows, rows - row),
                 .b = w.panel(panel),
                 .panel_stride = PackedWeight::panel_elements(k),
                 .n = std::min(kGroupPanels * kPanelRows, n - column),
                 .k = padded,
                 .c = y + row * n + column,
                 .c_stride = n,
                 .store = args.store == Store::kAdd ? GemmStore::kAdd : GemmStore::kAssign});
  });
}

}  // namespace espalier::cpu
