#include "model/forward_batch.h"

#include "base/result.h"

namespace espalier {

void ForwardBatch::clear() {
  for (auto* field :
       {&tokens_, &parents_, &index_, &kv_slot_, &row_sequence_, &page_table_, &rotary_, &capture_row_, &capture_slot_, &output_rows_}) {
    field->clear();
  }
  sequences_.clear();
}

int32_t ForwardBatch::add(const SequenceInput& sequence) {
  ESPALIER_CHECK(!sequence.tokens.empty());
  ESPALIER_CHECK(sequence.parents.empty() || sequence.parents.size() == sequence.tokens.size());
  ESPALIER_CHECK(sequence.captures.empty() || sequence.keep == Keep::kAll);
  const int32_t row_begin = num_rows();
  const auto count = static_cast<int32_t>(sequence.tokens.size());
  const auto sequence_index = static_cast<int32_t>(sequences_.size());
  sequences_.push_back({.row_begin = row_begin,
                        .num_rows = count,
                        .base = sequence.base,
                        .state_slot = sequence.state_slot,
                        .page_begin = static_cast<int32_t>(page_table_.size()),
                        .keep = sequence.keep});
  for (int32_t i = 0; i < count; ++i) {
    const int32_t parent = sequence.parents.empty() ? i - 1 : sequence.parents[static_cast<size_t>(i)];
    ESPALIER_CHECK(parent < i && parent >= -1);
    ESPALIER_CHECK(sequence.keep == Keep::kNone || parent == i - 1);
    tokens_.push_back(sequence.tokens[static_cast<size_t>(i)]);
    parents_.push_back(parent < 0 ? -1 : row_begin + parent);
    index_.push_back(parent < 0 ? sequence.base : index_[static_cast<size_t>(row_begin + parent)] + 1);
    kv_slot_.push_back(sequence.base + i);
    row_sequence_.push_back(sequence_index);
  }
  page_table_.insert(page_table_.end(), sequence.page_table.begin(), sequence.page_table.end());
  for (const auto& capture : sequence.captures) {
    capture_row_.push_back(row_begin + capture.row);
    capture_slot_.push_back(capture.slot);
  }
  const int32_t first_output = num_outputs();
  for (const int32_t row : sequence.output_rows) output_rows_.push_back(row_begin + row);
  return first_output;
}

const BatchView& ForwardBatch::view() {
  rotary_.clear();
  for (int stream = 0; stream < 3; ++stream) rotary_.insert(rotary_.end(), index_.begin(), index_.end());
  view_ = {.num_rows = num_rows(),
           .num_sequences = static_cast<int32_t>(sequences_.size()),
           .num_captures = static_cast<int32_t>(capture_row_.size()),
           .token = tokens_.data(),
           .embedding = nullptr,
           .parent = parents_.data(),
           .index = index_.data(),
           .rotary_position = rotary_.data(),
           .kv_slot = kv_slot_.data(),
           .row_sequence = row_sequence_.data(),
           .page_table = page_table_.data(),
           .sequences = sequences_.data(),
           .capture_row = capture_row_.data(),
           .capture_slot = capture_slot_.data()};
  return view_;
}

}  // namespace espalier
