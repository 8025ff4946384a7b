// The rows that a commit keeps: accepted paths of a pass, laid out as chains so that the ops of a decode step can run over them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/uncommitted_inputs.h"
#include "ops/batch_view.h"

namespace espalier {

// The path of one sequence's tree that is kept after a Keep::kNone pass.
struct CommitInput {
  int32_t sequence = 0;           // index in the pass
  std::span<const int32_t> path;  // indices into the sequence's tokens, root first, each the child of the one before
};

// Reused from commit to commit; allocates nothing after `reserve`.
class AcceptedRows {
 public:
  void reserve(int32_t max_rows);
  void build(const BatchView& pass, std::span<const CommitInput> accepted, const UncommittedInputs& uncommitted);

  const BatchView& view() const { return view_; }              // one Keep::kAll chain for each path
  std::span<const int32_t> places() const { return places_; }  // of each row in the uncommitted inputs
  std::span<const int32_t> pass_rows() const { return pass_rows_; }
  std::span<const int32_t> from_slots() const { return from_slots_; }  // where the pass put each row's key and value
  std::span<const int32_t> to_slots() const { return to_slots_; }      // where sequential decoding would have put them

 private:
  std::vector<int32_t> places_, pass_rows_, from_slots_, to_slots_, parents_, row_sequence_;
  std::vector<SequenceView> sequences_;
  BatchView view_;
};

}  // namespace espalier
