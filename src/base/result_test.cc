#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/format.h"

namespace espalier {
namespace {

Result<int> parse_digit(char c) {
  if (c < '0' || c > '9') return make_error(ErrorCode::kInvalidArgument, "expected a digit, found '{}'", c);
  return c - '0';
}

Result<int> add_digits(char a, char b) {
  ESPALIER_ASSIGN(const int left, parse_digit(a));
  ESPALIER_ASSIGN(const int right, parse_digit(b));
  return left + right;
}

Status require_digit(char c) {
  ESPALIER_TRY(parse_digit(c));
  return Ok{};
}

TEST(Result, CarriesAValue) {
  const Result<int> result = parse_digit('7');
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, 7);
}

TEST(Result, CarriesAnErrorWithCodeAndMessage) {
  const Result<int> result = parse_digit('x');
  ASSERT_FALSE(result.ok());
  EXPECT_FALSE(static_cast<bool>(result));
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.error().message, "expected a digit, found 'x'");
}

TEST(Result, AssignStopsAtTheFirstError) {
  EXPECT_EQ(add_digits('3', '4').value(), 7);
  EXPECT_EQ(add_digits('?', '!').error().message, "expected a digit, found '?'");
  EXPECT_EQ(add_digits('3', '!').error().message, "expected a digit, found '!'");
}

TEST(Result, TryPassesTheErrorOfAnyResultOn) {
  EXPECT_TRUE(require_digit('0').ok());
  EXPECT_EQ(require_digit('a').error().code, ErrorCode::kInvalidArgument);
}

TEST(Result, MovesAMoveOnlyValueOut) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Result, ErrorAndStringResultsAreNotConfused) {
  const Result<std::string> text(std::string("not an error"));
  EXPECT_TRUE(text.ok());
}

TEST(ResultDeathTest, ValueOfAnErrorAbortsWithItsMessage) {
  EXPECT_DEATH(static_cast<void>(parse_digit('x').value()), "value\\(\\) of an error: expected a digit, found 'x'");
}

TEST(ResultDeathTest, CheckNamesTheFailedExpression) { EXPECT_DEATH(ESPALIER_CHECK(1 + 1 == 3), "internal error at .*1 \\+ 1 == 3"); }

TEST(ErrorCode, EveryCodeHasItsOwnName) {
  EXPECT_EQ(error_code_name(ErrorCode::kNotFound), "not found");
  EXPECT_EQ(error_code_name(ErrorCode::kContextLength), "context length exceeded");
  EXPECT_EQ(error_code_name(static_cast<ErrorCode>(99)), "unknown");
}

}  // namespace
}  // namespace espalier
