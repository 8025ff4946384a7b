// Which query rows attend together. A block is a few rows of one sequence whose keys and values are read once for all of them. The rows
// of a tree are grouped by path: rows on one way from the root to a leaf see the same keys, up to their own depth.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/batch_view.h"

namespace espalier::cpu {

class AttentionPlan {
 public:
  struct Path {
    int32_t leaf;   // its last row
    bool in_place;  // every row of the path lies on the slot of its position: tiles need no gathering
  };
  struct Entry {
    int32_t row;
    int32_t path;
  };
  struct Block {
    int32_t sequence;
    int32_t begin;  // entries() [begin, end); ascending position within a path
    int32_t end;
    int32_t last_position;
  };

  void build(const BatchView& batch, int32_t max_block_rows);

  const std::vector<Path>& paths() const { return paths_; }
  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  void add_path(const BatchView& batch, int32_t leaf, int32_t row_begin);

  std::vector<Path> paths_;
  std::vector<Entry> entries_;
  std::vector<Block> blocks_;
  std::vector<bool> assigned_;  // by row
};

}  // namespace espalier::cpu
