// Row look-up in the embedding table.
#pragma once

#include "ops/batch_view.h"
#include "tensor/tensor.h"

namespace espalier {

// y[r, :] = table[token[r], :] widened to F32, unscaled; a row with token -1 takes batch.embedding[r, :]. Tokens are below table rows.
struct EmbedArgs {
  const BatchView* batch;
  ConstTensorView table;  // [vocab_rows, hidden], as stored: BF16, F16 or F32
  TensorView y;           // [num_rows, hidden] F32
};

}  // namespace espalier
