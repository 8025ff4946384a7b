#include "server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Histogram, BucketsAreCumulative) {
  Histogram histogram({1, 2, 5});
  for (const double value : {0.5, 1.0, 1.5, 9.0}) histogram.add(value);
  std::string text;
  histogram.append_to(text, "x", "help");
  EXPECT_EQ(text, "# HELP x help\n# TYPE x histogram\nx_bucket{le=\"1\"} 2\nx_bucket{le=\"2\"} 3\nx_bucket{le=\"5\"} 3\nx_bucket{le=\"+Inf\"} 4\nx_sum 12\nx_count 4\n");
}

TEST(Metrics, CountsRequestsByRouteAndStatus) {
  Metrics metrics;
  metrics.add({.method = "GET", .route = "/health", .status = 200});
  metrics.add({.method = "GET", .route = "/health", .status = 200});
  metrics.add({.method = "POST", .route = "/v1/chat/completions", .status = 400});
  const std::string text = metrics.text({}, nullptr);
  EXPECT_THAT(text, HasSubstr("espalier_requests_total{route=\"/health\",status=\"200\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("espalier_requests_total{route=\"/v1/chat/completions\",status=\"400\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("espalier_ready 0\n"));
  EXPECT_THAT(text, HasSubstr("espalier_request_duration_seconds_count 0\n")) << "nothing was generated";
  EXPECT_THAT(text, Not(HasSubstr("espalier_cache_bytes")));
}

TEST(Metrics, RepliesAreMeasured) {
  Metrics metrics;
  RequestRecord record{.route = "/v1/chat/completions", .status = 200, .total_ms = 1300.0, .generated = true, .empty_reply = true, .tool_calls = 2, .first_token_ms = 300.0};
  record.finish_reason = "tool_calls";
  record.stats.output_tokens = 11;
  metrics.add(record);
  EngineStats engine;
  engine.hot_tokens = 7;
  engine.evictions_by_reason = {{"budget", 3}};
  const std::string text = metrics.text({}, &engine);
  EXPECT_THAT(text, HasSubstr("espalier_time_to_first_token_seconds_bucket{le=\"0.25\"} 0\nespalier_time_to_first_token_seconds_bucket{le=\"0.5\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("espalier_time_per_output_token_seconds_sum 0.1\n")) << "1000 ms over the 10 tokens after the first";
  EXPECT_THAT(text, HasSubstr("espalier_finish_reasons_total{reason=\"tool_calls\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("espalier_tool_calls_total 2\n"));
  EXPECT_THAT(text, HasSubstr("espalier_empty_replies_total 1\n"));
  EXPECT_THAT(text, HasSubstr("espalier_hot_tokens_total 7\n"));
  EXPECT_THAT(text, HasSubstr("espalier_cache_evictions_total{reason=\"budget\"} 3\n"));
}

}  // namespace
}  // namespace espalier
