#include "chat/literal_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"

namespace espalier {
namespace {

std::string json(std::string_view text) { return json_from_literal(text, LiteralDialect::kJson).value_or("none"); }
std::string python(std::string_view text) { return json_from_literal(text, LiteralDialect::kPython).value_or("none"); }

TEST(JsonLiteral, ComesOutCompactWithItsNumbersAsWritten) {
  EXPECT_EQ(json(R"( {"k" : [1, 2.50, null, true, "é"], "e": {}} )"), R"({"k":[1,2.50,null,true,"é"],"e":{}})");
  EXPECT_EQ(json("[1e3, 12.0, 123456789012345678901234567890]"), "[1e3,12.0,123456789012345678901234567890]");
  EXPECT_EQ(json("5"), "5");
}

TEST(JsonLiteral, StringsComeOutAsLiteralUtf8) {  // D16
  EXPECT_EQ(json(R"("\u00e9 \ud83d\ude42 \u2028 \/ \n \u0000")"), "\"é 🙂 \xE2\x80\xA8 / \\n \\u0000\"");
}

TEST(JsonLiteral, IsStrict) {
  for (const char* text : {"", " ", "{'k': 1}", "[1,]", "{\"k\":1,}", "{\"k\" 1}", "{1: 2}", "True", "None", "NaN", "[1 2]", "[1, 2", "\"a\nb\"",
                           "01", "+1", "(1)", "\"\\x41\"", "\"\\ud800\"", "\"\\udc00\"", "{} {}", "\"a", "\"\\", "[1e999]"}) {
    EXPECT_EQ(json(text), "none") << text;
  }
}

TEST(PythonLiteral, ReadsBothSpellings) {  // D4
  EXPECT_EQ(python("{'k': 'v', 't': True, 'n': None}"), R"({"k":"v","t":true,"n":null})");
  EXPECT_EQ(python("{'k': true, \"n\": null}"), R"({"k":true,"n":null})");
  EXPECT_EQ(python("['x', \"y\", ]"), R"(["x","y"])");
  EXPECT_EQ(python("(1, 2.0, 'c')"), R"([1,2.0,"c"])");
  EXPECT_EQ(python("(1,)"), "[1]");
  EXPECT_EQ(python("()"), "[]");
  EXPECT_EQ(python("(((1)))"), "1");
  EXPECT_EQ(python("{1: 'a', 1.5: 'b', True: 'c', None: 'd'}"), R"({"1":"a","1.5":"b","true":"c","null":"d"})");
}

TEST(PythonLiteral, ReadsPythonsEscapes) {
  EXPECT_EQ(python(R"('it\'s \x41 \101 \u00e9 \U0001F642 \d \a')"), R"("it's A A é 🙂 \\d \u0007")");
  EXPECT_EQ(python(R"(r'C:\new')"), R"("C:\\new")");
  EXPECT_EQ(python("u'x'"), "\"x\"");
  EXPECT_EQ(python("'two\nlines'"), R"("two\nlines")");
}

TEST(PythonLiteral, EvaluatesNothing) {  // D8
  for (const char* text : {"__import__('os').system('id')", "open('/etc/passwd').read()", "[x for x in range(9)]", "1+1", "2**99", "'a' * 9",
                           "f'{1+1}'", "b'x'", "print", "lambda: 1", "{1, 2}", "1 if True else 2", "exec('1')", "'a' 'b'", "...", "{**{}}"}) {
    EXPECT_EQ(python(text), "none") << text;
  }
}

TEST(Literals, NestingHasALimit) {
  const auto nested = [](int levels) { return std::string(static_cast<size_t>(levels), '[') + std::string(static_cast<size_t>(levels), ']'); };
  EXPECT_EQ(json(nested(kMaxLiteralDepth)), nested(kMaxLiteralDepth));
  EXPECT_EQ(json(nested(kMaxLiteralDepth + 2)), "none");
  EXPECT_EQ(python(std::string(1000000, '(')), "none");
  EXPECT_TRUE(parse_json(nested(kMaxLiteralDepth), "nested").ok()) << "a reader of JSON must accept what comes out";
}

}  // namespace
}  // namespace espalier
