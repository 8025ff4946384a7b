// How many prompt rows fit into one step, learned from the steps themselves: a step should take at most `max_step_ms`, so that long
// prompts never starve decoding or cancellation.
#pragma once

#include <cstdint>

namespace espalier {

class StepBudget {
 public:
  StepBudget(double max_step_ms, int32_t max_rows) : max_step_ms_(max_step_ms), max_rows_(max_rows) {}

  // Prompt rows for a step that also decodes `decode_rows` rows; at least 1 if `decode_rows` leaves a row at all.
  int32_t prompt_rows(int32_t decode_rows) const;
  // A step of that many rows took `ms`.
  void observe(int32_t rows, double ms);
  double row_ms() const { return row_ms_; }

 private:
  double max_step_ms_;
  int32_t max_rows_;
  double row_ms_ = 0.0;   // cost of one more row in a large step; 0: nothing seen yet
  double step_ms_ = 0.0;  // cost of a step of few rows
};

}  // namespace espalier
