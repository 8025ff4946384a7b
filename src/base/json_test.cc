#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>

#include "base/file.h"
#include "base/format.h"

namespace espalier {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string parse_failure(std::string_view text, const JsonLimits& limits = {}) {
  const Result<Json> parsed = parse_json(text, "doc", limits);
  EXPECT_FALSE(parsed.ok()) << text;
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  return parsed.error().message;
}

std::string round_trip(std::string_view text) { return dump_json(parse_json(text, "doc").value()); }

std::string nested(int depth) { return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']'); }

TEST(ParseJson, KeepsTheOrderOfKeys) { EXPECT_EQ(round_trip(R"({"b":1,"a":{"z":[true,null],"y":"s"}})"), R"({"b":1,"a":{"z":[true,null],"y":"s"}})"); }

TEST(ParseJson, TopLevelMayBeAnyValue) {
  EXPECT_EQ(round_trip(" 7 "), "7");
  EXPECT_EQ(round_trip("\"s\""), "\"s\"");
  EXPECT_EQ(round_trip("[]"), "[]");
  EXPECT_EQ(round_trip("{}"), "{}");
}

TEST(ParseJson, LastDuplicateWinsInThePlaceOfTheFirst) { EXPECT_EQ(round_trip(R"({"a":1,"b":2,"a":3,"c":4,"a":5})"), R"({"a":5,"b":2,"c":4})"); }

TEST(ParseJson, DuplicatesAreFoundInLargeObjectsToo) {
  std::string text = "{";
  std::string expected = "{";
  for (int i = 0; i < 100; ++i) {
    text += format("\"k{}\":{},", i, i);
    expected += format("{}\"k{}\":{}", i == 0 ? "" : ",", i, i == 50 ? -1 : i);
  }
  EXPECT_EQ(round_trip(text + "\"k50\":-1}"), expected + "}");
}

TEST(ParseJson, BuildsAVocabularyOfAQuarterMillionKeysInUnderTenSeconds) {
  std::string text = "{";
  for (int i = 0; i < 250000; ++i) text += format("\"token_{}\":{},", i, i);
  text += "\"last\":0}";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(parse_json(text, "doc").value().size(), 250001u);
  // A search of the earlier keys at each new one takes minutes; the limit leaves room for sanitizers on a busy machine.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(ParseJson, DepthIsLimited) {
  EXPECT_TRUE(parse_json(nested(128), "doc").ok());
  EXPECT_THAT(parse_failure(nested(129)), HasSubstr("doc: nested deeper than 128 levels"));
  EXPECT_THAT(parse_failure(R"({"a":[1]})", {.max_depth = 1}), HasSubstr("nested deeper than 1 levels"));
  EXPECT_TRUE(parse_json("1", "doc", {.max_depth = 0}).ok());
}

TEST(ParseJson, AMillionOpenBracketsAreRefusedWithoutRecursion) { EXPECT_THAT(parse_failure(std::string(1000000, '[')), HasSubstr("nested deeper")); }

TEST(ParseJson, SizeIsLimited) {
  EXPECT_THAT(parse_failure("[1, 2, 3]", {.max_bytes = 8}), AllOf(StartsWith("doc: "), HasSubstr("9 bytes"), HasSubstr("limit of 8")));
  EXPECT_TRUE(parse_json("[1, 2]", "doc", {.max_bytes = 6}).ok());
}

TEST(ParseJson, IntegersKeepSixtyFourBits) {
  EXPECT_EQ(round_trip("[9223372036854775807,-9223372036854775808,18446744073709551615]"),
            "[9223372036854775807,-9223372036854775808,18446744073709551615]");
}

TEST(ParseJson, IntegersBeyondSixtyFourBitsBecomeFloats) {
  EXPECT_TRUE(parse_json("18446744073709551616", "doc").value().is_number_float());
  EXPECT_TRUE(parse_json("-9223372036854775809", "doc").value().is_number_float());
}

TEST(ParseJson, NumbersOutOfRangeAreErrors) {
  EXPECT_THAT(parse_failure("[1, 1e999]"), HasSubstr("doc: number out of range at byte"));
  EXPECT_THAT(parse_failure("-1e999"), HasSubstr("number out of range"));
  EXPECT_THAT(parse_failure(std::string(5000, '9')), HasSubstr("number out of range"));
}

TEST(ParseJson, MessageNamesSourcePlaceAndText) {
  EXPECT_EQ(parse_failure("{\"a\": nul}"), "doc: not valid JSON at byte 10, near '\"a\": nul}'");
  EXPECT_THAT(parse_failure("{\"a\": \"\x01\"}"), AllOf(HasSubstr("not valid JSON at byte"), HasSubstr("near")));
}

struct BadText {
  const char* name;
  std::string text;
};
class ParseJsonRefuses : public ::testing::TestWithParam<BadText> {};

TEST_P(ParseJsonRefuses, Text) { EXPECT_THAT(parse_failure(GetParam().text), StartsWith("doc: not valid JSON at byte ")); }

INSTANTIATE_TEST_SUITE_P(
    All, ParseJsonRefuses,
    ::testing::Values(BadText{"Empty", ""}, BadText{"Spaces", "  "}, BadText{"Truncated", "{\"a\": [1, 2"}, BadText{"TrailingText", "{} x"},
                      BadText{"TrailingComma", "[1,]"}, BadText{"Comment", "[1 /* one */]"}, BadText{"SingleQuotes", "{'a': 1}"}, BadText{"NaN", "NaN"},
                      BadText{"Infinity", "[Infinity]"}, BadText{"LeadingZero", "01"}, BadText{"BareWord", "hello"}, BadText{"KeyWithoutValue", "{\"a\"}"},
                      BadText{"OpenString", "\"abc"}, BadText{"RawControl", "\"a\nb\""}, BadText{"NulByte", std::string("\0", 1)},
                      BadText{"LoneSurrogateEscape", "\"\\ud800\""}, BadText{"BadUtf8", "\"\xff\""}, BadText{"OverlongUtf8", "\"\xc0\x80\""},
                      BadText{"Utf8Surrogate", "\"\xed\xa0\x80\""}, BadText{"CutUtf8", "\"\xe2\x82\""}),
    [](const auto& tested) { return tested.param.name; });

TEST(DumpJson, FloatsAreShortestAndStayFloats) {
  EXPECT_EQ(dump_json(Json(1.0)), "1.0");
  EXPECT_EQ(dump_json(Json(-0.0)), "-0.0");
  EXPECT_EQ(dump_json(Json(0.1)), "0.1");
  EXPECT_EQ(dump_json(Json(1e300)), "1e+300");
  EXPECT_EQ(dump_json(Json(5e-324)), "5e-324");
  EXPECT_EQ(dump_json(Json(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(dump_json(Json(std::numeric_limits<double>::quiet_NaN())), "null");
}

TEST(DumpJson, BadUtf8IsReplacedInValuesAndKeys) {
  Json value = Json::object();
  value["k\xff"] = "v\xfe";
  EXPECT_EQ(dump_json(value), "{\"k\xEF\xBF\xBD\":\"v\xEF\xBF\xBD\"}");
}

TEST(DumpJson, NonAsciiStaysRawAndControlsAreEscaped) {
  EXPECT_EQ(dump_json(Json("\xC3\xA9\xF0\x9F\x98\x80 \"\\\n\x01\x7f")), "\"\xC3\xA9\xF0\x9F\x98\x80 \\\"\\\\\\n\\u0001\x7f\"");
}

TEST(JsonLookUp, FindsEachType) {
  const Json object = parse_json(R"({"i": -3, "d": 2.5, "b": true, "s": "x"})", "doc").value();
  EXPECT_EQ(json_int(object, "i", "cfg").value(), -3);
  EXPECT_EQ(json_number(object, "d", "cfg").value(), 2.5);
  EXPECT_EQ(json_number(object, "i", "cfg").value(), -3.0);
  EXPECT_TRUE(json_bool(object, "b", "cfg").value());
  EXPECT_EQ(json_string(object, "s", "cfg").value(), "x");
}

TEST(JsonLookUp, ErrorsNameWhereWhatAndFound) {
  const Json object = parse_json(R"({"i": 1.0, "u": 18446744073709551615, "b": 1, "s": null})", "doc").value();
  EXPECT_EQ(json_int(object, "x", "cfg").error().message, "cfg: 'x' is missing");
  EXPECT_EQ(json_int(object, "i", "cfg").error().message, "cfg: 'i' must be an integer, found 1.0");
  EXPECT_EQ(json_int(object, "u", "cfg").error().message, "cfg: 'u' must be a 64-bit integer, found 18446744073709551615");
  EXPECT_EQ(json_bool(object, "b", "cfg").error().message, "cfg: 'b' must be true or false, found 1");
  EXPECT_EQ(json_string(object, "s", "cfg").error().message, "cfg: 's' must be a string, found null");
  EXPECT_EQ(json_number(Json::array(), "x", "cfg").error().message, "cfg: expected an object, found array");
}

TEST(JsonLookUp, ALongWrongValueIsCutInTheMessage) {
  const Json object = {{"s", std::vector<int>(1000, 7)}};
  EXPECT_LT(json_string(object, "s", "cfg").error().message.size(), 120u);
}

TEST(LoadJson, NamesTheFile) {
  const std::string path = ::testing::TempDir() + "json_test_broken.json";
  ASSERT_TRUE(write_file_atomic(path, "{\"a\":").ok());
  EXPECT_THAT(load_json(path).error().message, StartsWith(path + ": not valid JSON at byte"));
  EXPECT_EQ(load_json("/nonexistent/config.json").error().code, ErrorCode::kNotFound);
}

TEST(Json, DuplicateKeysCanBeAnError) {
  const JsonLimits strict{.duplicate_keys = DuplicateKeys::kError};
  EXPECT_THAT(parse_failure(R"({"a":{"twice":1,"b":2,"twice":3}})", strict), HasSubstr("key 'twice' occurs twice"));
  EXPECT_TRUE(parse_json(R"([{"a":1},{"a":2}])", "doc", strict).ok());
  EXPECT_EQ((*parse_json(R"({"a":1,"a":2})", "doc"))["a"], 2);
}

}  // namespace
}  // namespace espalier
