#include "replay/replay_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ReplayReport example() {
  return {.turns_ok = 2,
          .turns_failed = 1,
          .prompt_tokens = 2000,
          .hot_tokens = 1500,
          .output_tokens = 30,
          .token_counts = "by the engine",
          .wall_s = 1.5,
          .ttft_ms = summarise({10.0, 30.0}),
          .tpot_ms = summarise({}),
          .latency_ms = summarise({100.0, 200.0, 300.0}),
          .iou = {.score = 0.6335, .expected = 3, .observed = 2, .missing = 1},
          .finish_reasons = {{"length", 1}, {"stop", 3}},
          .cold_reasons = {{"diverged at token #", 2}},
          .failures = {"conversation 'c' turn 3: out of memory"}};
}

TEST(ReplayReportJson, HasExactlyTheDocumentedKeysInOrder) {
  const Json json = to_json(example());
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"turns_ok", "turns_failed", "prompt_tokens", "hot_tokens", "output_tokens", "wall_s", "ttft_ms", "tpot_ms",
                                            "latency_ms", "iou", "finish_reasons"}));
  EXPECT_EQ(json.at("turns_failed"), 1);
  EXPECT_EQ(json.at("iou"), 0.6335);
  EXPECT_EQ(json.at("wall_s"), 1.5);
  EXPECT_EQ(json.at("latency_ms").at("percentiles").at("50.0"), 200.0);
  EXPECT_EQ(dump_json(json.at("tpot_ms")), "{}");
  EXPECT_EQ(dump_json(json.at("finish_reasons")), R"({"length":1,"stop":3})");
}

TEST(ReplayReportJson, OfAnEmptyReplay) {
  EXPECT_EQ(dump_json(to_json(ReplayReport{})),
            R"({"turns_ok":0,"turns_failed":0,"prompt_tokens":0,"hot_tokens":0,"output_tokens":0,"wall_s":0.0,"ttft_ms":{},"tpot_ms":{},"latency_ms":{},)"
            R"("iou":null,"finish_reasons":{}})");
}

TEST(ReplayReportTable, ShowsWhatMatters) {
  const std::string table = to_table(example());
  EXPECT_THAT(table, HasSubstr("turns           2 ok, 1 failed\n"));
  EXPECT_THAT(table, HasSubstr("prompt tokens   2000, 1500 hot (75.000 %)\n"));
  EXPECT_THAT(table, HasSubstr("token counts    by the engine\n"));
  EXPECT_THAT(table, HasSubstr("IoU             0.6335 over 3 turns, 1 missing\n"));
  EXPECT_THAT(table, HasSubstr("finish reasons  stop 3, length 1\n"));
  EXPECT_THAT(table, HasSubstr("       2  diverged at token #\n"));
  EXPECT_THAT(table, HasSubstr("  conversation 'c' turn 3: out of memory\n"));
}

TEST(ReplayReportTable, ColumnsOfSeriesAlignAndItFitsAScreen) {
  ReplayReport report = example();
  report.failures.assign(1, std::string(500, 'x'));
  std::istringstream lines(to_table(report));
  std::vector<size_t> series_widths;
  size_t count = 0;
  for (std::string text; std::getline(lines, text); ++count) {
    EXPECT_LE(text.size(), 110u) << text;
    if (text.find("average") != std::string::npos || text.starts_with("TTFT") || text.starts_with("latency")) series_widths.push_back(text.size());
  }
  EXPECT_LE(count, 24u);
  EXPECT_EQ(series_widths, std::vector<size_t>(3, series_widths[0]));
}

TEST(ReplayReportTable, OfAnEmptyReplayClaimsNothing) {
  const std::string table = to_table(ReplayReport{});
  EXPECT_THAT(table, HasSubstr("no samples"));
  EXPECT_THAT(table, HasSubstr("no turn to score"));
  EXPECT_THAT(table, Not(HasSubstr("nan")));
}

TEST(ColdReasonKind, NumbersDoNotMakeAKind) {
  EXPECT_EQ(cold_reason_kind("diverged from every known prompt at token 1500"), "diverged from every known prompt at token #");
  EXPECT_EQ(cold_reason_kind("evicted 3.5 s ago (12 of 400)."), "evicted # s ago (# of #).");
  EXPECT_EQ(cold_reason_kind(""), "");
  EXPECT_EQ(cold_reason_kind("token 7."), "token #.");
}

}  // namespace
}  // namespace espalier
