// The rows of a pass that lead from the committed end of a sequence to one row.
#pragma once

#include <algorithm>
#include <vector>

#include "ops/batch_view.h"

namespace espalier {

// Ancestors of `row` and the row itself, root first.
inline std::vector<int32_t> row_path(const BatchView& batch, int32_t row) {
  std::vector<int32_t> path;
  for (int32_t r = row; r >= 0; r = batch.parent[r]) path.push_back(r);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace espalier
