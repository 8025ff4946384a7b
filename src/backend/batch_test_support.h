// Hand-made passes for op tests: token trees of several sequences with pages and state slots. For tests only.
#pragma once

#include <utility>
#include <vector>

#include "backend/op_test_support.h"
#include "ops/batch_view.h"

namespace espalier::testing {

// Parents are rows of the sequence, -1 the committed end.
struct TestSequence {
  std::vector<int32_t> parents;
  int32_t base = 0;
  int32_t state_slot = 0;
  Keep keep = Keep::kAll;
  std::vector<int32_t> pages = {};
  std::vector<std::pair<int32_t, int32_t>> captures = {};  // row, slot
};

inline std::vector<int32_t> chain(int32_t length) {
  std::vector<int32_t> parents;
  for (int32_t i = 0; i < length; ++i) parents.push_back(i - 1);
  return parents;
}

inline std::vector<int32_t> random_tree(int32_t num_nodes, Random& random) {
  std::vector<int32_t> parents = {-1};
  for (int32_t i = 1; i < num_nodes; ++i) parents.push_back(random.below(i));
  return parents;
}

inline std::vector<int32_t> path_to(const std::vector<int32_t>& parents, int32_t node) {
  std::vector<int32_t> path;
  for (; node >= 0; node = parents[static_cast<size_t>(node)]) path.insert(path.begin(), node);
  return path;
}

class TestBatch {
 public:
  explicit TestBatch(const std::vector<TestSequence>& sequences) {
    for (const TestSequence& sequence : sequences) add(sequence);
    for (int stream = 0; stream < 3; ++stream) rotary_.insert(rotary_.end(), index_.begin(), index_.end());
    view_ = {.num_rows = static_cast<int32_t>(parent_.size()),
             .num_sequences = static_cast<int32_t>(sequences_.size()),
             .num_captures = static_cast<int32_t>(capture_row_.size()),
             .token = token_.data(),
             .parent = parent_.data(),
             .index = index_.data(),
             .rotary_position = rotary_.data(),
             .kv_slot = kv_slot_.data(),
             .row_sequence = row_sequence_.data(),
             .page_table = page_table_.data(),
             .sequences = sequences_.data(),
             .capture_row = capture_row_.data(),
             .capture_slot = capture_slot_.data()};
  }
  TestBatch(const TestBatch&) = delete;
  TestBatch& operator=(const TestBatch&) = delete;

  const BatchView& view() const { return view_; }
  std::vector<int32_t>& tokens() { return token_; }
  std::vector<int32_t>& rotary() { return rotary_; }

 private:
  void add(const TestSequence& sequence) {
    const auto row_begin = static_cast<int32_t>(parent_.size());
    const auto count = static_cast<int32_t>(sequence.parents.size());
    sequences_.push_back({row_begin, count, sequence.base, sequence.state_slot, static_cast<int32_t>(page_table_.size()), sequence.keep});
    for (int32_t i = 0; i < count; ++i) {
      const int32_t parent = sequence.parents[static_cast<size_t>(i)];
      token_.push_back(0);
      parent_.push_back(parent < 0 ? -1 : row_begin + parent);
      index_.push_back(parent < 0 ? sequence.base : index_[static_cast<size_t>(row_begin + parent)] + 1);
      kv_slot_.push_back(sequence.base + i);
      row_sequence_.push_back(static_cast<int32_t>(sequences_.size()) - 1);
    }
    page_table_.insert(page_table_.end(), sequence.pages.begin(), sequence.pages.end());
    for (const auto& [row, slot] : sequence.captures) {
      capture_row_.push_back(row_begin + row);
      capture_slot_.push_back(slot);
    }
  }

  std::vector<int32_t> token_, parent_, index_, rotary_, kv_slot_, row_sequence_, page_table_, capture_row_, capture_slot_;
  std::vector<SequenceView> sequences_;
  BatchView view_;
};

}  // namespace espalier::testing
