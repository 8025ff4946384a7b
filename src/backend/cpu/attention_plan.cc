#include "backend/cpu/attention_plan.h"

#include <algorithm>

namespace espalier::cpu {

void AttentionPlan::build(const BatchView& batch, int32_t max_block_rows) {
  paths_.clear();
  entries_.clear();
  blocks_.clear();
  assigned_.assign(static_cast<size_t>(batch.num_rows), false);
  for (int32_t s = 0; s < batch.num_sequences; ++s) {
    const SequenceView& sequence = batch.sequences[s];
    const auto first = static_cast<int32_t>(entries_.size());
    // From the last row up: a row not yet on a path is the end of one. A chain is one path.
    for (int32_t row = sequence.row_begin + sequence.num_rows - 1; row >= sequence.row_begin; --row) {
      if (!assigned_[static_cast<size_t>(row)]) add_path(batch, row, sequence.row_begin);
    }
    const auto last = static_cast<int32_t>(entries_.size());
    for (int32_t begin = first; begin < last; begin += max_block_rows) {
      Block block{s, begin, std::min(last, begin + max_block_rows), 0};
      for (int32_t i = block.begin; i < block.end; ++i) {
        block.last_position = std::max(block.last_position, batch.index[entries_[static_cast<size_t>(i)].row]);
      }
      blocks_.push_back(block);
    }
  }
}

void AttentionPlan::add_path(const BatchView& batch, int32_t leaf, int32_t row_begin) {
  Path path{leaf, true};
  const size_t first = entries_.size();
  for (int32_t row = leaf; row >= row_begin; row = batch.parent[row]) {
    path.in_place = path.in_place && batch.kv_slot[row] == batch.index[row];
    if (assigned_[static_cast<size_t>(row)]) continue;
    assigned_[static_cast<size_t>(row)] = true;
    entries_.push_back({row, static_cast<int32_t>(paths_.size())});
  }
  std::reverse(entries_.begin() + static_cast<std::ptrdiff_t>(first), entries_.end());
  paths_.push_back(path);
}

}  // namespace espalier::cpu
