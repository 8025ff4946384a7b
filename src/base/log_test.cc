#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace espalier {
namespace {

TEST(Log, LevelNames) {
  EXPECT_EQ(parse_log_level("debug"), LogLevel::kDebug);
  EXPECT_EQ(parse_log_level("error"), LogLevel::kError);
  EXPECT_EQ(parse_log_level("loud"), std::nullopt);
  EXPECT_EQ(parse_log_level(""), std::nullopt);
}

TEST(Log, LinesBelowTheLevelAreNotWritten) {
  set_log_level(LogLevel::kWarn);
  ::testing::internal::CaptureStderr();
  log_info("quiet {}", 1);
  log_warn("kept {} of {}", 2, 3);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: kept 2 of 3\n");
  set_log_level(LogLevel::kInfo);
}

TEST(Log, BracesInAnArgumentAreText) {
  ::testing::internal::CaptureStderr();
  log_error("{}", "{} %s");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::EndsWith("{} %s\n"));
}

TEST(Log, JsonLinesCarryFieldsAndTextLinesDoNot) {
  ::testing::internal::CaptureStderr();
  log_event(LogLevel::kInfo, "answered", R"("status":200)");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "info: answered\n");
  set_log_format(LogFormat::kJson);
  ::testing::internal::CaptureStderr();
  log_event(LogLevel::kWarn, "say \"it\"\n", R"("status":200)");
  log_info("plain");
  const std::string lines = ::testing::internal::GetCapturedStderr();
  set_log_format(LogFormat::kText);
  const size_t end = lines.find('\n');
  const Json first = parse_json(lines.substr(0, end), "line").value();
  EXPECT_EQ(first["level"], "warning");
  EXPECT_EQ(first["message"], "say \"it\"\n");
  EXPECT_EQ(first["status"], 200);
  EXPECT_THAT(first["time"].get<std::string>(), ::testing::MatchesRegex("....-..-..T..:..:..\\....Z"));
  EXPECT_EQ(parse_json(lines.substr(end + 1, lines.size() - end - 2), "line").value()["message"], "plain");
}

}  // namespace
}  // namespace espalier
