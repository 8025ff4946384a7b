#include "chat/tool_schemas.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier {
namespace {

Json tool(const std::string& name, const std::string& parameters) {
  return Json{{"type", "function"}, {"function", Json{{"name", name}, {"parameters", parse_json(parameters, "schema").value()}}}};
}

// The value of a parameter `p` with that schema.
std::string coerce(const std::string& schema, std::string_view text) {
  return ToolSchemas(Json::array({tool("f", R"({"type":"object","properties":{"p":)" + schema + "}}")})).coerce("f", "p", text);
}

TEST(ToolSchemas, KeepsNamesInOrderAndLeavesOddEntriesOut) {
  const Json tools = parse_json(R"([{"type":"function","function":{"name":"b"}}, 5, null, {}, {"function":5}, {"function":{"name":5}},
      {"type":"function","function":{"name":"a","parameters":7}}, {"type":"function","function":{"name":"b","parameters":{}}}])",
                                "tools").value();
  const ToolSchemas schemas(tools);
  EXPECT_EQ(schemas.names(), (std::vector<std::string>{"b", "a"}));
  EXPECT_TRUE(schemas.declares("a"));
  EXPECT_FALSE(schemas.declares("c"));
  EXPECT_EQ(schemas.coerce("a", "x", "5"), "\"5\"");
  for (const char* none : {"null", "[]", "{}", "5", "\"text\""}) EXPECT_TRUE(ToolSchemas(parse_json(none, "tools").value()).empty()) << none;
}

TEST(ToolSchemas, KnowsWhichParametersAToolTakes) {
  const ToolSchemas schemas(Json::array({tool("f", R"({"properties":{"p":{}}})"),
                                         tool("open", R"({"properties":{"p":{}},"additionalProperties":{"type":"integer"}})"),
                                         tool("bare", "{}")}));
  EXPECT_TRUE(schemas.takes("f", "p"));
  EXPECT_FALSE(schemas.takes("f", "q"));
  EXPECT_TRUE(schemas.takes("open", "q"));
  EXPECT_TRUE(schemas.takes("bare", "q"));
  EXPECT_TRUE(schemas.takes("unknown", "q"));
  EXPECT_EQ(schemas.coerce("open", "q", "5"), "5");
}

TEST(Coercion, UnknownToolsAndParametersKeepText) {
  const ToolSchemas schemas(Json::array({tool("f", R"({"properties":{"p":{"type":"integer"}}})")}));
  EXPECT_EQ(schemas.coerce("g", "p", "5"), "\"5\"");
  EXPECT_EQ(schemas.coerce("f", "q", "null"), "\"null\"");
}

TEST(Coercion, BooleansInAnyCase) {  // D5: only the word true is true
  for (const char* text : {"true", "True", "TRUE", " true\n"}) EXPECT_EQ(coerce(R"({"type":"boolean"})", text), "true") << text;
  for (const char* text : {"false", "False", "1", "yes", "", "\"true\""}) EXPECT_EQ(coerce(R"({"type":"boolean"})", text), "false") << text;
  EXPECT_EQ(coerce(R"({"type":"boolean"})", "None"), "null");
}

TEST(Coercion, StructuresInJsonOrPython) {  // D4
  EXPECT_EQ(coerce(R"({"type":"array"})", R"([true, null, 12.0])"), "[true,null,12.0]");
  EXPECT_EQ(coerce(R"({"type":"array"})", "[True, None, 12.0]"), "[true,null,12.0]");
  EXPECT_EQ(coerce(R"({"type":"dict"})", "{'a': 'b'}"), R"({"a":"b"})");
  EXPECT_EQ(coerce(R"({"type":"object"})", R"("{\"k\": 1}")"), R"({"k":1})");
  EXPECT_EQ(coerce(R"({"type":"object"})", R"("{'k': 1}")"), R"({"k":1})");
  EXPECT_EQ(coerce(R"({"type":"object"})", "not json"), "\"not json\"");
  EXPECT_EQ(coerce(R"({"type":"object"})", R"("text")"), "\"text\"");
}

TEST(Coercion, FindsTheTypeWhereverTheSchemaSaysIt) {  // D7
  EXPECT_EQ(coerce(R"({"anyOf":[{"type":"null"},{"type":"integer"}]})", "7"), "7");
  EXPECT_EQ(coerce(R"({"oneOf":[{"type":"boolean"},{"type":"null"}]})", "True"), "true");
  EXPECT_EQ(coerce(R"({"allOf":[{"description":"x"},{"type":"integer"}]})", "7"), "7");
  EXPECT_EQ(coerce(R"({"type":["null","integer"]})", "7"), "7");
  EXPECT_EQ(coerce(R"({"type":"INTEGER"})", "7"), "7");
  EXPECT_EQ(coerce(R"({"properties":{}})", R"({"a": 1})"), R"({"a":1})");
  EXPECT_EQ(coerce(R"({"items":{}})", "[1]"), "[1]");
  EXPECT_EQ(coerce("{}", "7"), "\"7\"");
  EXPECT_EQ(coerce(R"({"enum":[1,2,"3"]})", "1"), "1");
  EXPECT_EQ(coerce(R"({"enum":[1,2,"3"]})", "3"), "\"3\"");
  EXPECT_EQ(coerce(R"({"enum":["a",null]})", "null"), "null");
  EXPECT_EQ(coerce(R"({"type":"string","enum":["1","2"]})", "1"), "\"1\"");
}

TEST(Coercion, NumbersForAStringStayAString) {  // D7
  EXPECT_EQ(coerce(R"({"type":"string"})", "123"), "\"123\"");
  EXPECT_EQ(coerce(R"({"type":"string"})", "null"), "\"null\"");
  EXPECT_EQ(coerce(R"({"anyOf":[{"type":"string"},{"type":"null"}]})", "123"), "\"123\"");
  EXPECT_EQ(coerce(R"({"anyOf":[{"type":"string"},{"type":"null"}]})", "None"), "null");
  EXPECT_EQ(coerce(R"({"type":"string","nullable":true})", "null"), "null");
}

TEST(Coercion, FollowsLocalReferences) {  // D7
  const auto with_definition = [](const std::string& schema, std::string_view text) {
    return ToolSchemas(Json::array({tool("f", R"({"properties":{"p":)" + schema + R"(},"$defs":{"n":{"type":"integer"},)" +
                                                 R"("a/b":{"type":"array"},)" +
                                                 R"("loop":{"$ref":"#/$defs/loop"},)" +
                                                 R"("grow":{"anyOf":[{"$ref":"#/$defs/grow"},{"$ref":"#/$defs/grow"}]}}})")}))
        .coerce("f", "p", text);
  };
  EXPECT_EQ(with_definition(R"({"$ref":"#/$defs/n"})", "5"), "5");
  EXPECT_EQ(with_definition(R"({"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]})", "5"), "5");
  EXPECT_EQ(with_definition(R"({"$ref":"#/$defs/a~1b"})", "[5]"), "[5]");
  for (const char* none : {"#/$defs/missing", "#/$defs/loop", "#/$defs/grow", "#/$defs/n/type", "other.json", "#", "", "#/"}) {
    EXPECT_EQ(with_definition("{\"$ref\":\"" + std::string(none) + "\"}", "5"), "\"5\"") << none;
  }
  EXPECT_EQ(with_definition(R"({"$ref":5})", "5"), "\"5\"");
}

TEST(Coercion, OddSchemasKeepText) {
  for (const char* schema : {"5", "null", "[]", "true", R"({"type":5})", R"({"type":[]})", R"({"type":[5]})", R"({"anyOf":5})",
                             R"({"anyOf":[]})", R"({"anyOf":[5]})", R"({"enum":5})"}) {
    EXPECT_EQ(coerce(schema, "5"), "\"5\"") << schema;
  }
}

TEST(Coercion, HostileTextIsText) {  // D8
  for (const char* type : {"object", "array", "integer", "number", "date"}) {
    EXPECT_EQ(coerce("{\"type\":\"" + std::string(type) + "\"}", "__import__('os').system('id')"), "\"__import__('os').system('id')\"") << type;
  }
}

}  // namespace
}  // namespace espalier
