#include "ops/embed.h"

#include <cstring>

#include "backend/cpu/cpu_ops.h"
#include "tensor/codec.h"

namespace espalier::cpu {

void CpuOps::embed(const EmbedArgs& args) {
  const BatchView& batch = *args.batch;
  const int64_t hidden = args.table.shape[1];
  auto* y = args.y.as<float>();
  for_ranges(batch.num_rows, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      float* row = y + r * hidden;
      const int64_t token = batch.token[r];
      if (token < 0) {
        std::memcpy(row, batch.embedding + r * hidden, static_cast<size_t>(hidden) * sizeof(float));
      } else if (args.table.dtype == DType::kBf16) {
        const auto* bits = args.table.as<uint16_t>() + token * hidden;
        for (int64_t i = 0; i < hidden; ++i) row[i] = bf16_to_f32(bits[i]);
      } else {
        for (int64_t i = 0; i < hidden; ++i)
          row[i] = load_as_f32(args.table.data, args.table.dtype, static_cast<size_t>(token * hidden + i));
      }
    }
  });
}

}  // namespace espalier::cpu
