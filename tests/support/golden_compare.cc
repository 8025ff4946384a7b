#include "tests/support/golden_compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace espalier::testing {

void expect_within(std::span<const float> actual, std::span<const float> expected, const Allowance& allowance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  std::vector<double> errors;
  double squared_error = 0.0;
  double squared_size = 0.0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(static_cast<double>(actual[i]) - expected[i]);
    ASSERT_TRUE(std::isfinite(error)) << what << ", element " << i << ": " << actual[i] << " instead of " << expected[i];
    errors.push_back(error);
    squared_error += error * error;
    squared_size += static_cast<double>(expected[i]) * expected[i];
  }
  std::sort(errors.begin(), errors.end());
  double sum = 0.0;
  for (const double error : errors) sum += error;
  EXPECT_LE(errors.back(), allowance.max) << what << ": largest error";
  EXPECT_LE(errors[std::min(errors.size() - 1, errors.size() * 999 / 1000)], allowance.p999) << what << ": 99.9th percentile of errors";
  EXPECT_LE(sum / static_cast<double>(errors.size()), allowance.mean) << what << ": mean error";
  EXPECT_LE(std::sqrt(squared_error), allowance.relative_rms * std::sqrt(squared_size))
      << what << ": root mean square error relative to the tensor";
}

}  // namespace espalier::testing
