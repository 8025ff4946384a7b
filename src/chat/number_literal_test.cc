#include "chat/number_literal.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier {
namespace {

std::string integer(std::string_view text) { return json_integer(text).value_or("none"); }
std::string number(std::string_view text) { return json_number(text).value_or("none"); }
std::string python(std::string_view text) { return json_from_python_number(text).value_or("none"); }

TEST(JsonInteger, ReadsWhatPythonsIntReads) {
  EXPECT_EQ(integer("5"), "5");
  EXPECT_EQ(integer("+3"), "3");
  EXPECT_EQ(integer("-17"), "-17");
  EXPECT_EQ(integer("007"), "7");
  EXPECT_EQ(integer(" 4 \n"), "4");
  EXPECT_EQ(integer("-0"), "0");
  EXPECT_EQ(integer("1_000"), "1000");
  EXPECT_EQ(integer("123456789012345678901234567890"), "123456789012345678901234567890");
}

TEST(JsonInteger, RefusesEverythingElse) {
  for (const char* text : {"", " ", "+", "-", "3.0", "1e3", "0x10", "1 2", "abc", "5a", "_1", "1_", "1__0", "--1", "\xD9\xA3"}) {
    EXPECT_EQ(integer(text), "none") << text;
  }
}

TEST(JsonNumber, IntegralValuesBecomeIntegers) {
  EXPECT_EQ(number("12.0"), "12");
  EXPECT_EQ(number("1e3"), "1000");
  EXPECT_EQ(number("-0.0"), "0");
  EXPECT_EQ(number("1.5e1"), "15");
  EXPECT_EQ(number("100e-2"), "1");
  EXPECT_EQ(number("0e99999"), "0");
  EXPECT_EQ(number("1e23"), "100000000000000000000000");
}

TEST(JsonNumber, OthersKeepTheirLiteral) {
  EXPECT_EQ(number("2.50"), "2.50");
  EXPECT_EQ(number(" 1e-7 "), "1e-7");
  EXPECT_EQ(number("2.5E-1"), "2.5E-1");
  EXPECT_EQ(number(".5"), "0.5");
  EXPECT_EQ(number("+2.5"), "2.5");
  EXPECT_EQ(number("0.1000000000000000055511151231257827"), "0.1000000000000000055511151231257827");
}

TEST(JsonNumber, WhatNoDoubleHoldsIsNone) {
  for (const char* text : {"inf", "nan", "-Infinity", "1e309", "1e999999999999999999999", "x", ".", "e5", "1e", "1e+", "1.2.3"}) {
    EXPECT_EQ(number(text), "none") << text;
  }
  EXPECT_EQ(integer(std::string(400, '9')), "none");
  EXPECT_EQ(integer(std::string(2000000, '1')), "none");
  EXPECT_FALSE(is_json_number("1e309"));
}

TEST(IsJsonNumber, IsTheGrammarOfJson) {
  for (const char* text : {"0", "-0", "10", "1.5", "1e5", "1E+05", "-1.25e-3"}) EXPECT_TRUE(is_json_number(text)) << text;
  for (const char* text : {"", "-", "01", "+1", "1.", ".5", "1e", "1_0", " 1", "1 ", "NaN", "0x1"}) EXPECT_FALSE(is_json_number(text)) << text;
}

TEST(JsonFromPythonNumber, KeepsTheKind) {
  EXPECT_EQ(python("12.0"), "12.0");
  EXPECT_EQ(python("1e3"), "1e3");
  EXPECT_EQ(python("5"), "5");
  EXPECT_EQ(python("1."), "1.0");
  EXPECT_EQ(python(".5"), "0.5");
  EXPECT_EQ(python("+7"), "7");
  EXPECT_EQ(python("1_000"), "1000");
  EXPECT_EQ(python("007"), "none") << "no literal in Python: a date or a code is text";
}

}  // namespace
}  // namespace espalier
