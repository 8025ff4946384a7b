// A pass on its way to the model: token trees of several sequences, built on the host. Reused from step to step: `clear` keeps the memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token_id.h"
#include "ops/batch_view.h"

namespace espalier {

// The tokens one sequence brings into a pass.
struct SequenceInput {
  std::span<const TokenId> tokens = {};   // topological order: a parent stands before its children
  std::span<const int32_t> parents = {};  // per token, index into `tokens`, -1 = the committed end; empty = a chain
  int32_t base = 0;                       // tokens committed so far
  int32_t state_slot = 0;
  std::span<const int32_t> page_table = {};  // pages for slots [0, base + tokens.size())
  Keep keep = Keep::kAll;
  std::span<const int32_t> output_rows = {};  // indices into `tokens` whose logits are wanted, ascending
  struct Capture {
    int32_t row;
    int32_t slot;
  };
  std::span<const Capture> captures = {};  // state after `row` into `slot`; Keep::kAll only, ascending
};

class ForwardBatch {
 public:
  void clear();
  // Returns the index of the first logits row of this sequence's outputs.
  int32_t add(const SequenceInput& sequence);

  int32_t num_rows() const { return static_cast<int32_t>(tokens_.size()); }
  int32_t num_outputs() const { return static_cast<int32_t>(output_rows_.size()); }
  std::span<const int32_t> output_rows() const { return output_rows_; }  // rows of the whole batch
  const BatchView& view();                                               // valid until the next clear or add

 private:
  std::vector<int32_t> tokens_, parents_, index_, kv_slot_, row_sequence_, page_table_, rotary_, capture_row_, capture_slot_, output_rows_;
  std::vector<SequenceView> sequences_;
  BatchView view_;
};

}  // namespace espalier
