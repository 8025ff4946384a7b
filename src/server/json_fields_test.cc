#include "server/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json json(std::string_view text) { return parse_json(text, "test").value(); }

template <typename T>
std::string message(const Result<T>& result) {
  EXPECT_FALSE(result.ok());
  return result.ok() ? "" : result.error().message;
}

TEST(JsonFields, AbsentAndNullAreTheSame) {
  const Json body = json(R"({"a":null})");
  JsonFields fields(body);
  EXPECT_EQ(fields.integer("a", 0, 1).value(), std::nullopt);
  EXPECT_EQ(fields.number("b", 0, 1).value(), std::nullopt);
  EXPECT_EQ(fields.string("c", 1).value(), std::nullopt);
  EXPECT_EQ(fields.object("d").value(), nullptr);
}

// L1, L2: every number is checked for sign, range and type.
TEST(JsonFields, IntegersOutOfRangeOrKindAreRefused) {
  for (const std::string_view text : {"-1", "11", "2.5", "1e300", "18446744073709551615", "99999999999999999999999", "\"3\"", "true", "[]", "{}"}) {
    const Json body = json(R"({"n":)" + std::string(text) + "}");
    JsonFields fields(body);
    EXPECT_THAT(message(fields.integer("n", 0, 10)), HasSubstr("n: expected an integer in [0, 10], found ")) << text;
  }
  const Json body = json(R"({"a":3.0,"b":10})");
  JsonFields fields(body);
  EXPECT_EQ(fields.integer("a", 0, 10).value(), 3);
  EXPECT_EQ(fields.integer("b", 0, 10).value(), 10);
}

TEST(JsonFields, NumbersOutOfRangeOrKindAreRefused) {
  for (const std::string_view text : {"-0.1", "1.01", "1e308", "\"1\"", "false", "[1]"}) {
    const Json body = json(R"({"p":)" + std::string(text) + "}");
    JsonFields fields(body);
    EXPECT_THAT(message(fields.number("p", 0.0, 1.0)), HasSubstr("p: expected a number in [0, 1], found ")) << text;
  }
}

TEST(JsonFields, ErrorsNameThePathAndShowALittleOfTheValue) {
  const Json body = json(R"({"s":")" + std::string(500, 'x') + R"(","o":{"k":1}})");
  JsonFields fields(body, "outer");
  EXPECT_THAT(message(fields.boolean("s")), HasSubstr("outer.s: expected true or false, found \"xxx"));
  EXPECT_LT(message(fields.boolean("s")).size(), 150u);
  EXPECT_THAT(message(fields.array("o", 3)), HasSubstr("outer.o: expected a list, found an object of 1 members"));
}

TEST(JsonFields, RefusedFieldsMayHoldTheirHarmlessValue) {
  const Json body = json(R"({"echo":false,"best_of":2})");
  JsonFields fields(body);
  EXPECT_TRUE(fields.refuse("echo", "no", false).ok());
  EXPECT_TRUE(fields.refuse("absent", "no").ok());
  EXPECT_THAT(message(fields.refuse("best_of", "use n", 1)), HasSubstr("best_of: use n"));
}

TEST(JsonFields, KnowsWhatNobodyAskedFor) {
  const Json body = json(R"({"zeta":1,"n":2,"user":"u","alpha":3})");
  JsonFields fields(body);
  EXPECT_TRUE(fields.integer("n", 0, 5).ok());
  fields.ignore("user");
  EXPECT_THAT(fields.unknown(), ElementsAre("zeta", "alpha"));
}

}  // namespace
}  // namespace espalier
