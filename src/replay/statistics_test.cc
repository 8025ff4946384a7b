#include "replay/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

std::vector<std::optional<size_t>> early_stopping_indices(size_t count) {
  std::vector<std::optional<size_t>> indices;
  for (const double percent : {50.0, 75.0, 80.0, 90.0, 95.0, 97.0, 99.0, 99.9}) indices.push_back(early_stopping_index(count, percent));
  return indices;
}

TEST(Percentiles, AreElementsOfTheSeriesRoundedDown) {
  EXPECT_EQ(percentile_index(1, 99.9), 0u);
  EXPECT_EQ(percentile_index(2, 50.0), 0u);
  EXPECT_EQ(percentile_index(3, 50.0), 1u);
  EXPECT_EQ(percentile_index(101, 99.0), 99u);
  EXPECT_EQ(percentile_index(1007, 99.9), 1004u);
  EXPECT_EQ(percentile_index(1007, 99.0), 995u);
}

// The harness's own estimates for these lengths.
TEST(EarlyStopping, IndicesOfTheHarness) {
  EXPECT_THAT(early_stopping_indices(1007), ElementsAre(Optional(541u), Optional(788u), Optional(836u), Optional(929u), Optional(973u), Optional(990u),
                                                        Optional(1004u), std::nullopt));
  EXPECT_THAT(early_stopping_indices(1006), ElementsAre(Optional(541u), Optional(787u), Optional(835u), Optional(928u), Optional(972u), Optional(989u),
                                                        Optional(1003u), std::nullopt));
}

TEST(EarlyStopping, SmallestLengthsWithAnEstimate) {
  const std::vector<std::pair<double, size_t>> minimum{{50.0, 11}, {75.0, 24}, {80.0, 31}, {90.0, 64}, {95.0, 130}, {97.0, 219}, {99.0, 662}, {99.9, 6636}};
  for (const auto& [percent, count] : minimum) {
    EXPECT_EQ(early_stopping_index(count, percent), count - 1) << percent;
    EXPECT_EQ(early_stopping_index(count - 1, percent), std::nullopt) << percent;
  }
  EXPECT_EQ(early_stopping_index(0, 50.0), std::nullopt);
}

// For p99: with t values left out, the smallest series has h(t) + t values; h is the harness's.
TEST(EarlyStopping, GrowsByOneAtTheHarnessesLengths) {
  const std::vector<size_t> h{661, 836, 998, 1153, 1302};
  for (size_t t = 1; t <= h.size(); ++t) {
    const size_t count = h[t - 1] + t;
    EXPECT_EQ(early_stopping_index(count, 99.0), count - t);
    EXPECT_NE(early_stopping_index(count - 1, 99.0), count - 1 - t);
  }
}

TEST(EarlyStopping, LongSeriesStayFinite) {
  const auto index = early_stopping_index(1000000, 50.0);
  ASSERT_TRUE(index.has_value());
  EXPECT_NEAR(static_cast<double>(*index), 500000 + 2.326 * 500, 10);  // normal approximation
}

TEST(Summarise, MatchesHandComputedValuesInAnyOrder) {
  std::vector<double> values(1007);
  std::iota(values.begin(), values.end(), 0.0);
  std::shuffle(values.begin(), values.end(), std::mt19937(1));
  const SeriesSummary s = summarise(values);
  EXPECT_EQ(s.count, 1007u);
  EXPECT_EQ(s.total, 1006.0 * 1007.0 / 2.0);
  EXPECT_EQ(s.min, 0.0);
  EXPECT_EQ(s.max, 1006.0);
  EXPECT_EQ(s.average, 503.0);
  EXPECT_NEAR(s.standard_deviation, std::sqrt(1007.0 * 1008.0 / 12.0), 1e-9);  // variance of 0..n-1 over n-1: n(n+1)/12
  EXPECT_EQ(s.median, 503.0);
  EXPECT_THAT(s.percentiles, ElementsAre(1004, 995, 975, 955, 905, 804, 754, 503, 251, 100, 50, 10));
  EXPECT_THAT(s.early_stopping, ElementsAre(std::nullopt, Optional(1004.0), Optional(990.0), Optional(973.0), Optional(929.0), Optional(836.0),
                                            Optional(788.0), Optional(541.0)));
}

TEST(Summarise, OneValueHasNoDeviation) {
  const SeriesSummary s = summarise({2.5});
  EXPECT_EQ(s.average, 2.5);
  EXPECT_EQ(s.standard_deviation, 0.0);
  EXPECT_EQ(s.median, 2.5);
}

TEST(SummaryJson, HasTheKeysOfTheHarness) {
  EXPECT_EQ(dump_json(to_json(summarise({1.0, 3.0, 2.0}))),
            R"({"total":6.0,"min":1.0,"max":3.0,"median":2.0,"avg":2.0,"std_dev":1.0,"percentiles":{"99.9":2.0,"99.0":2.0,"97.0":2.0,"95.0":2.0,)"
            R"("90.0":2.0,"80.0":2.0,"75.0":2.0,"50.0":2.0,"25.0":1.0,"10.0":1.0,"5.0":1.0,"1.0":1.0},"early_stopping_percentiles":{"99.9":null,)"
            R"("99.0":null,"97.0":null,"95.0":null,"90.0":null,"80.0":null,"75.0":null,"50.0":null}})");
  EXPECT_EQ(dump_json(to_json(summarise({}))), "{}");
}

}  // namespace
}  // namespace espalier
