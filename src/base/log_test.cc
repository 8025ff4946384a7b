#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace espalier
