// Summaries of measured series by the rules of the MLPerf harness, so that its numbers and ours can be laid side by side. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace espalier {

struct PercentileKey {
  std::string_view name;  // key in reports
  double percent = 0.0;
};
inline constexpr std::array<PercentileKey, 12> kPercentiles{{{"99.9", 99.9}, {"99.0", 99.0}, {"97.0", 97.0}, {"95.0", 95.0}, {"90.0", 90.0}, {"80.0", 80.0},
                                                              {"75.0", 75.0}, {"50.0", 50.0}, {"25.0", 25.0}, {"10.0", 10.0}, {"5.0", 5.0}, {"1.0", 1.0}}};
// Those for which the harness also gives an early-stopping estimate: the leading entries of at least 50 percent.
inline constexpr size_t kNumEarlyStopping = 8;

struct SeriesSummary {
  size_t count = 0;
  double total = 0.0, min = 0.0, max = 0.0, average = 0.0;
  double standard_deviation = 0.0;  // of a sample (n - 1); 0 for one value
  double median = 0.0;              // the 50th percentile by the rule below
  std::array<double, kPercentiles.size()> percentiles{};
  std::array<std::optional<double>, kNumEarlyStopping> early_stopping{};
};

// Values must be finite. All zero for an empty series.
SeriesSummary summarise(std::vector<double> values);

// Index of a percentile in `count` > 0 sorted values: floor((count - 1) * percent / 100), never interpolated.
size_t percentile_index(size_t count, double percent);

// Index, in `count` sorted values, of an upper bound of the percentile that holds with 99 % confidence: count - t for the largest t >= 1
// with P(Binomial(count, 1 - percent / 100) <= t) < 0.01. None if there are too few values.
std::optional<size_t> early_stopping_index(size_t count, double percent);

// {"total", "min", "max", "median", "avg", "std_dev", "percentiles": {"99.9": ...}, "early_stopping_percentiles": {..., null}}; {} if empty.
Json to_json(const SeriesSummary& summary);

}  // namespace espalier
