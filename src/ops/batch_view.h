// One forward pass as the ops see it: rows grouped by sequence, each sequence a token tree on top of what it has committed.
// All pointers are backend memory and outlive the pass. Everything that changes from pass to pass is data in here.
#pragma once

#include <cstdint>

namespace espalier {

enum class Keep : int32_t {
  kAll,   // the rows are a chain and all of them are kept: the sequence's state slot is advanced in place
  kNone,  // the rows are a tree to be judged: the state slot is read and left untouched until a commit
};

struct SequenceView {
  int32_t row_begin = 0;   // its rows are [row_begin, row_begin + num_rows)
  int32_t num_rows = 0;
  int32_t base = 0;        // tokens committed before this pass
  int32_t state_slot = 0;
  int32_t page_begin = 0;  // its page table is page_table[page_begin ...]; slot s lies on page s / page_size
  Keep keep = Keep::kAll;
};

struct BatchView {
  int32_t num_rows = 0;
  int32_t num_sequences = 0;
  int32_t num_captures = 0;

  const int32_t* token = nullptr;           // [num_rows]; -1: the row's input is embedding[row] instead
  const float* embedding = nullptr;         // [num_rows, hidden] F32, or null when every row has a token
  const int32_t* parent = nullptr;          // [num_rows] row of the parent (smaller than the row), -1: the committed end of the sequence
  const int32_t* index = nullptr;           // [num_rows] place in the sequence: base + depth; decides masks and attention tiles
  const int32_t* rotary_position = nullptr; // [3, num_rows] temporal, height, width streams; equal for text
  const int32_t* kv_slot = nullptr;         // [num_rows] slot that receives the row's key and value; for Keep::kAll equal to index
  const int32_t* row_sequence = nullptr;    // [num_rows]
  const int32_t* page_table = nullptr;      // page indices of all sequences, one after the other
  const SequenceView* sequences = nullptr;  // [num_sequences]

  // Capture points: the recurrence and the convolution also write the state AFTER capture_row to capture_slot. Rows ascend; only rows
  // of Keep::kAll sequences.
  const int32_t* capture_row = nullptr;   // [num_captures]
  const int32_t* capture_slot = nullptr;  // [num_captures]
};

}  // namespace espalier
