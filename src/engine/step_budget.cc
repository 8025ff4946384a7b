#include "engine/step_budget.h"

#include <algorithm>

namespace espalier {
namespace {

constexpr int32_t kFirstRows = 64;   // of the first prompt step, before anything is known
constexpr int32_t kLargeStep = 32;   // from so many rows on a step tells the cost of a row
constexpr double kNewest = 0.5;      // weight of the newest observation: attention makes rows dearer as a history grows

}  // namespace

int32_t StepBudget::prompt_rows(int32_t decode_rows) const {
  const int32_t room = std::max(0, max_rows_ - decode_rows);
  if (room == 0) return 0;
  if (row_ms_ == 0.0) return std::min(room, kFirstRows);
  const double left_ms = max_step_ms_ - (decode_rows > 0 ? step_ms_ : 0.0);
  const double rows = std::max(1.0, left_ms / row_ms_);
  return rows >= room ? room : static_cast<int32_t>(rows);
}

void StepBudget::observe(int32_t rows, double ms) {
  const auto blend = [](double& average, double newest) { average = average == 0.0 ? newest : (1 - kNewest) * average + kNewest * newest; };
  if (rows >= kLargeStep) {
    blend(row_ms_, ms / rows);
  } else if (rows > 0) {
    blend(step_ms_, ms);
    if (row_ms_ > 0.0 && ms < row_ms_ * rows) blend(row_ms_, ms / rows);  // rows turned out cheaper: the budget can grow again
  }
}

}  // namespace espalier
