#include "model/accepted_rows.h"

#include "base/result.h"

namespace espalier {

void AcceptedRows::reserve(int32_t max_rows) {
  for (auto* field : {&places_, &pass_rows_, &from_slots_, &to_slots_, &parents_, &row_sequence_})
    field->reserve(static_cast<size_t>(max_rows));
  sequences_.reserve(static_cast<size_t>(max_rows));
}

void AcceptedRows::build(const BatchView& pass, std::span<const CommitInput> accepted, const UncommittedInputs& uncommitted) {
  for (auto* field : {&places_, &pass_rows_, &from_slots_, &to_slots_, &parents_, &row_sequence_}) field->clear();
  sequences_.clear();
  for (const CommitInput& input : accepted) {
    if (input.path.empty()) continue;
    ESPALIER_CHECK(input.sequence >= 0 && input.sequence < pass.num_sequences);
    const SequenceView& sequence = pass.sequences[input.sequence];
    ESPALIER_CHECK(sequence.keep == Keep::kNone);
    const auto row_begin = static_cast<int32_t>(pass_rows_.size());
    int32_t parent = -1;
    for (const int32_t node : input.path) {
      ESPALIER_CHECK(node >= 0 && node < sequence.num_rows);
      const int32_t row = sequence.row_begin + node;
      ESPALIER_CHECK(pass.parent[row] == parent);
      parent = row;
      const auto here = static_cast<int32_t>(pass_rows_.size());
      parents_.push_back(here == row_begin ? -1 : here - 1);
      row_sequence_.push_back(static_cast<int32_t>(sequences_.size()));
      places_.push_back(uncommitted.place_of(row));
      pass_rows_.push_back(row);
      from_slots_.push_back(pass.kv_slot[row]);
      to_slots_.push_back(pass.index[row]);
    }
    sequences_.push_back(sequence);
    sequences_.back().row_begin = row_begin;
    sequences_.back().num_rows = static_cast<int32_t>(input.path.size());
    sequences_.back().keep = Keep::kAll;
  }
  view_ = {.num_rows = static_cast<int32_t>(pass_rows_.size()),
           .num_sequences = static_cast<int32_t>(sequences_.size()),
           .parent = parents_.data(),
           .index = to_slots_.data(),
           .kv_slot = to_slots_.data(),
           .row_sequence = row_sequence_.data(),
           .page_table = pass.page_table,
           .sequences = sequences_.data()};
}

}  // namespace espalier
