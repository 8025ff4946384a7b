#include "ops/embed.h"

#include "backend/reference/reference_ops.h"
#include "tensor/codec.h"

namespace espalier {

void ReferenceOps::embed(const EmbedArgs& args) {
  const BatchView& batch = *args.batch;
  const int64_t hidden = args.y.shape[1];
  for (int64_t r = 0; r < batch.num_rows; ++r) {
    float* y = args.y.as<float>() + r * hidden;
    const int64_t token = batch.token[r];
    for (int64_t i = 0; i < hidden; ++i) {
      y[i] = token < 0 ? batch.embedding[r * hidden + i]
                       : load_as_f32(args.table.data, args.table.dtype, static_cast<size_t>(token * hidden + i));
    }
  }
}

}  // namespace espalier
