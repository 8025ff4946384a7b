#include "chat/reply_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "chat/tool_schemas.h"

namespace espalier {
namespace {

std::shared_ptr<const ToolSchemas> tools() {
  static const auto schemas = std::make_shared<const ToolSchemas>(
      parse_json(R"([{"type":"function","function":{"name":"bash","parameters":{"properties":{
                         "command":{"type":"string"},"timeout":{"type":"integer"}}}}},
                     {"type":"function","function":{"name":"f","parameters":{"properties":{
                         "n":{"type":"number"},"a":{"type":"array"},"s":{"type":"string"}}}}},
                     {"type":"function","function":{"name":"my tool"}}])",
                 "tools")
          .value());
  return schemas;
}

ReplyParserOptions xml() { return {.format = ToolCallFormat::kXmlFunction, .tools = tools()}; }
ReplyParserOptions json() { return {.format = ToolCallFormat::kJsonFunction, .tools = tools()}; }
ReplyParserOptions thinking(ReplyParserOptions options) {
  options.starts_in_reasoning = true;
  return options;
}

// "content [name{arguments} name{arguments}...]", with "..." behind calls that are not complete.
std::string shown(const ParsedReply& reply) {
  std::string out = reply.reasoning.empty() ? "" : "(" + reply.reasoning + ")";
  out += reply.content;
  for (const ParsedCall& call : reply.calls) out += "[" + call.name + call.arguments + (call.complete ? "]" : "...]");
  return out;
}

struct Streamed {
  ParsedReply reply;
  std::string unplaced;
};

Streamed stream(std::string_view text, const ReplyParserOptions& options, size_t piece_bytes) {
  ReplyParser parser(options);
  Streamed out;
  for (size_t at = 0; at < text.size(); at += piece_bytes) {
    for (const ReplyDelta& delta : parser.feed(text.substr(at, piece_bytes))) {
      EXPECT_TRUE(!delta.text.empty() || delta.kind == ReplyDelta::Kind::kCallEnd);
      out.reply.add(delta);
    }
  }
  for (const ReplyDelta& delta : parser.finish()) out.reply.add(delta);
  out.unplaced = parser.unplaced_text();
  return out;
}

// Whole, and in pieces of every small size.
std::string parsed(std::string_view text, const ReplyParserOptions& options) {
  const std::string whole = shown(parse_reply(text, options));
  for (size_t piece_bytes = 1; piece_bytes < 40; ++piece_bytes) {
    EXPECT_EQ(shown(stream(text, options, piece_bytes).reply), whole) << "in pieces of " << piece_bytes;
  }
  return whole;
}

std::string call(std::string_view command) {
  return "<tool_call>\n<function=bash>\n<parameter=command>\n" + std::string(command) + "\n</parameter>\n</function>\n</tool_call>";
}

TEST(XmlReply, ContentThenCalls) {  // D13
  EXPECT_EQ(parsed("Let me look.\n\n" + call("ls"), xml()), "Let me look.\n\n[bash{\"command\":\"ls\"}]");
  EXPECT_EQ(parsed("\n \n" + call("ls") + "\n", xml()), "[bash{\"command\":\"ls\"}]");
  EXPECT_EQ(parsed("a " + call("1") + call("2") + "\n\n" + call("3"), xml()),
            "a [bash{\"command\":\"1\"}][bash{\"command\":\"2\"}][bash{\"command\":\"3\"}]");
  EXPECT_EQ(parsed(call("ls\n"), xml()), "[bash{\"command\":\"ls\\n\"}]") << "a blank line before the closer is one newline of the value";
  EXPECT_EQ(parsed("only text", xml()), "only text");
  EXPECT_EQ(parsed("", xml()), "");
}

TEST(XmlReply, BareCallsOfDeclaredToolsCount) {  // D1
  const std::string body = "\n<parameter=command>\nls\n</parameter>\n</function>";
  EXPECT_EQ(parsed("<function=bash>" + body, xml()), "[bash{\"command\":\"ls\"}]");
  EXPECT_EQ(parsed("ok <function=bash>" + body + "\n</tool_call>", xml()), "ok [bash{\"command\":\"ls\"}]");
  EXPECT_EQ(parsed("<function=bash>" + body + "\n<function=bash>" + body, xml()), "[bash{\"command\":\"ls\"}][bash{\"command\":\"ls\"}]");
  EXPECT_EQ(parsed("<function=bash>\n<parameter=command>\nls", xml()), "[bash{\"command\":\"ls\"}...]");
  EXPECT_EQ(parsed("<function=other>" + body, xml()), "<function=other>" + body);
  EXPECT_EQ(parsed("<tool_call>\n<function=other>" + body + "\n</tool_call>", xml()), "[other{\"command\":\"ls\"}]");
  EXPECT_EQ(parsed("<tool_call>\n<function=my tool>\n</function>\n</tool_call>", xml()), "[my tool{}]") << "whatever a tool is named";
}

TEST(XmlReply, OrphanClosersAreSwallowedBehindCallsAlone) {  // D1, D13
  const Streamed behind = stream(call("ls") + "\n</tool_call>\n</tool_call>", xml(), 1);
  EXPECT_EQ(shown(behind.reply), "[bash{\"command\":\"ls\"}]");
  EXPECT_EQ(behind.unplaced, "");
  EXPECT_EQ(parsed("text\n</tool_call>", xml()), "text\n</tool_call>");
  EXPECT_EQ(parsed("</tool_call>", xml()), "</tool_call>");
}

TEST(XmlReply, NamesThatAreNoneLeaveText) {  // D2
  for (const char* name : {"", "no such", "{{ name }}", "a\nb", "a<b"}) {
    const std::string text = "See <tool_call>\n<function=" + std::string(name) + ">\n</function>\n</tool_call> there";
    EXPECT_EQ(parsed(text, xml()), text);
    EXPECT_EQ(parsed(text + call("ls"), xml()), text + "[bash{\"command\":\"ls\"}]");
  }
  EXPECT_EQ(parsed("<tool_call>\n<function=bas", xml()), "<tool_call>\n<function=bas") << "the reply ends in the name";
}

TEST(XmlReply, ClosersThatDriftAreForgiven) {  // D2
  const std::string open = "<tool_call>\n<function=bash>\n<parameter=command>\nls\n";
  const std::string expected = "[bash{\"command\":\"ls\"}]";
  EXPECT_EQ(parsed(open + "</parameter>\n</parameter>\n</tool_call>", xml()), expected) << "</parameter> for </function>";
  EXPECT_EQ(parsed(open + "</parameter>\n</parameter>\n</parameter>\n</tool_call>", xml()), expected);
  EXPECT_EQ(parsed(open + "</function>\n</tool_call>", xml()), expected);
  EXPECT_EQ(parsed(open + "</tool_call>", xml()), expected);
  EXPECT_EQ(parsed(open + "</parameter></tool_call>", xml()), expected);
  EXPECT_EQ(parsed(open + "</parameter>\n</function>", xml()), expected);
  EXPECT_EQ(parsed("<tool_call><function=bash><parameter=command>ls</function></tool_call>", xml()), expected);
  EXPECT_EQ(parsed(open + "</parameter>\n" + call("x"), xml()), expected + "[bash{\"command\":\"x\"}]");
  EXPECT_EQ(parsed(open + "</function>\n" + call("x"), xml()), expected + "[bash{\"command\":\"x\"}]");
  EXPECT_EQ(parsed(open + "</tool_call>\n" + call("x"), xml()), expected + "[bash{\"command\":\"x\"}]");
  EXPECT_EQ(parsed(open + "<parameter=timeout>\n5\n</parameter>\n</function>\n</tool_call>", xml()), "[bash{\"command\":\"ls\",\"timeout\":5}]");
}

TEST(XmlReply, MarkupInsideAValueStaysThere) {  // D2
  const std::string nested = "<tool_call>\n<function=g>\n<parameter=p>\n1\n</parameter>\n</function>\n</tool_call>";
  const std::string nested_twice =
      "<tool_call>\n<function=g>\n<parameter=p>\n<function=h>\n<parameter=q>\n</parameter>\n</function>\n</parameter>\n</function>\n</tool_call>";
  const std::string nested_mention = "<tool_call>\n<function=g>\n<parameter=p>\necho '</function>'\n</parameter>\n</function>\n</tool_call>";
  for (const std::string& command :
       {std::string("grep '</parameter>' x"), std::string("echo '</function>' y"), std::string("echo '</tool_call>' y"),
        std::string("if [ 1 < 2 ]; then"), std::string("<a href=\"x\">&amp;</a>"), std::string("echo '<parameter=timeout>' y"),
        std::string("a\n<parameter=other>\nb"), std::string("</parameter"), std::string("echo '<tool_call>'"), nested, nested + "\nEOF",
        nested + "\n" + nested + "\nEOF", nested_twice + "\nEOF", nested_mention + "\nEOF", std::string("<function=g>\n</function>"),
        std::string("x <tool_call><function=g><parameter=p>1</parameter></function></tool_call> y"),
        std::string("closed, never opened:\n</parameter>\n</function>\n</tool_call>\nEOF"),
        std::string("EXPECT_EQ(\"</parameter></function></tool_call>\", x);\n\"</parameter></tool_call>\", y"),
        std::string("opened, never closed:\n<tool_call>\n<function=g>\n<parameter=p>\n")}) {
    const ParsedReply reply = parse_reply(call(command), xml());
    ASSERT_EQ(reply.calls.size(), 1u) << command;
    EXPECT_EQ(parse_json(reply.calls[0].arguments, "arguments")->at("command").get<std::string>(), command);
    EXPECT_TRUE(reply.calls[0].complete) << command;
    parsed(call(command), xml());
  }
}

TEST(XmlReply, TextThatNoAnswerHasRoomForIsKeptAside) {  // D2: no lost bytes
  EXPECT_EQ(stream(call("ls") + "\nDone.", xml(), 7).unplaced, "\nDone.");
  EXPECT_EQ(stream(call("ls") + "\nand \n" + call("x"), xml(), 7).unplaced, "\nand \n");
  const Streamed stray = stream("<tool_call>\n<function=bash>\nls\n<parameter=timeout>\n5\n</parameter>\n</function>\n</tool_call>", xml(), 7);
  EXPECT_EQ(shown(stray.reply), "[bash{\"timeout\":5}]");
  EXPECT_EQ(stray.unplaced, "\nls\n");
}

TEST(XmlReply, ProseBehindACallIsNoPartOfIt) {  // D13
  EXPECT_EQ(parsed(call("ls") + "\nDone.", xml()), "[bash{\"command\":\"ls\"}]");
  EXPECT_EQ(parsed(call("ls") + " then " + call("x") + " and " + call("y") + ".", xml()),
            "[bash{\"command\":\"ls\"}][bash{\"command\":\"x\"}][bash{\"command\":\"y\"}]");
  EXPECT_EQ(parsed(call("ls") + " then <function=bash>\n</function> end", xml()), "[bash{\"command\":\"ls\"}][bash{}]");
  EXPECT_EQ(parsed("<tool_call>\n<function=bash>\n<parameter=command>\nls\n</function>\n</tool_call>\nDone.", xml()), "[bash{\"command\":\"ls\"}]");
}

TEST(XmlReply, AParameterComesWithTheNextOneAndACallWithTheNextTag) {
  ReplyParser parser(xml());
  ParsedReply reply;
  const auto after = [&](std::string_view text) {
    for (const ReplyDelta& delta : parser.feed(text)) reply.add(delta);
    return shown(reply);
  };
  EXPECT_EQ(after("<tool_call>\n<function=bash>"), "[bash...]");
  EXPECT_EQ(after("\n<parameter=timeout>\n5\n</parameter>\n"), "[bash...]");
  EXPECT_EQ(after("<parameter=command>"), "[bash{\"timeout\":5...]");
  EXPECT_EQ(after("\nls\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n"), "[bash{\"timeout\":5...]");
  EXPECT_EQ(after("<function=f>"), "[bash{\"timeout\":5,\"command\":\"ls\"}][f...]");
  EXPECT_EQ(after("\n</function>"), "[bash{\"timeout\":5,\"command\":\"ls\"}][f{}]");
}

TEST(XmlReply, ArgumentsAreAlwaysAnObject) {
  EXPECT_EQ(parsed("<tool_call>\n<function=f>\n</function>\n</tool_call>", xml()), "[f{}]");
  EXPECT_EQ(parsed("<tool_call>\n<function=f>", xml()), "[f{}...]");
  EXPECT_EQ(parsed("<tool_call>\n<function=f>\n<parameter=a>\n[12.0, 1e3]\n</parameter>\n"
                   "<parameter=n>\n2.50\n</parameter>\n</function>\n</tool_call>",
                   xml()),
            "[f{\"a\":[12.0,1e3],\"n\":2.50}]");
}

TEST(XmlReply, ACallCutByTheTokenLimitIsFlaggedAndValid) {  // D19
  const std::string text =
      "<tool_call>\n<function=bash>\n<parameter=timeout>\n5\n</parameter>\n"
      "<parameter=command>\nls 'ü'\n</parameter>\n</function>\n</tool_call>";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const ParsedReply reply = parse_reply(std::string_view(text).substr(0, cut), xml());
    if (cut < text.find("bash>") + 5) {
      EXPECT_EQ(reply.content, cut == 0 ? "" : text.substr(0, cut));
      continue;
    }
    ASSERT_EQ(reply.calls.size(), 1u) << cut;
    const Result<Json> arguments = parse_json(reply.calls[0].arguments, "arguments");
    ASSERT_TRUE(arguments.ok() && arguments->is_object()) << reply.calls[0].arguments;
    EXPECT_EQ(reply.calls[0].complete, cut >= text.find("</function>") + 11) << cut;
    const bool has_timeout = cut >= text.find("\n</parameter>"), has_command = cut >= text.rfind("\n</parameter>");
    EXPECT_TRUE(!has_timeout || arguments->value("timeout", Json()) == 5) << cut << reply.calls[0].arguments;
    EXPECT_TRUE(!has_command || arguments->value("command", Json()) == "ls 'ü'") << cut << reply.calls[0].arguments;
  }
}

TEST(XmlReply, CallsBackToBackHaveTheirOwnIndices) {  // D10
  const std::string text = call("a") + call("b");
  for (size_t piece_bytes : {text.size(), size_t{1}, text.size() / 2 - 3, text.size() / 2 + 9}) {
    ReplyParser parser(xml());
    std::vector<int32_t> begun, ended;
    std::string names;
    const auto take = [&](const std::vector<ReplyDelta>& deltas) {
      for (const ReplyDelta& delta : deltas) {
        if (delta.kind == ReplyDelta::Kind::kCallBegin) begun.push_back(delta.call);
        if (delta.kind == ReplyDelta::Kind::kCallEnd) ended.push_back(delta.call);
        if (delta.kind == ReplyDelta::Kind::kCallBegin) names += delta.text + " ";
      }
    };
    for (size_t at = 0; at < text.size(); at += piece_bytes) take(parser.feed(std::string_view(text).substr(at, piece_bytes)));
    take(parser.finish());
    EXPECT_EQ(begun, (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(ended, begun);
    EXPECT_EQ(names, "bash bash ");
  }
}

TEST(XmlReply, BurstsOfTokensGiveTheSameCalls) {  // D11
  const std::string text = "go " + call("a 'b'") + "\n" + call("c\nd");
  EXPECT_EQ(parsed(text, xml()), "go [bash{\"command\":\"a 'b'\"}][bash{\"command\":\"c\\nd\"}]");
}

TEST(XmlReply, OneSerialiserForEveryPath) {  // D16
  const std::string value = "日本 🙂 \xE2\x80\xA8 \" \\ \t \x01 " + std::string(1, '\0') + "\r\nend";
  const std::string arguments = R"({"command":"日本 🙂 )" "\xE2\x80\xA8" R"( \" \\ \t \u0001 \u0000\r\nend"})";
  EXPECT_EQ(parsed(call(value), xml()), "[bash" + arguments + "]");
}

TEST(XmlReply, CharactersAreNeverCut) {  // D17
  const std::string text = "ü🙂 " + call("🙂");
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    ReplyParser parser(thinking(xml()));
    std::string seen;
    for (const ReplyDelta& delta : parser.feed("🙂</think>" + text.substr(0, cut))) {
      ASSERT_TRUE(parse_json(dump_json(Json(delta.text)), "delta").ok());
      EXPECT_EQ(delta.text.find("\xEF\xBF\xBD"), std::string::npos) << cut;
      seen += delta.text;
    }
    for (const ReplyDelta& delta : parser.feed(text.substr(cut))) seen += delta.text;
    for (const ReplyDelta& delta : parser.finish()) seen += delta.text;
    EXPECT_EQ(seen, "🙂ü🙂 bash{\"command\":\"🙂\"}");
  }
  EXPECT_EQ(parsed("a\xF0\x9F\x99", xml()), "a\xEF\xBF\xBD") << "a reply that ends inside a character says so";
  EXPECT_EQ(parsed("a\xFF" "b", xml()), "a\xEF\xBF\xBD" "b");
}

TEST(Reply, WithoutToolsEverythingIsContent) {
  const std::string text = "a " + call("ls");
  EXPECT_EQ(parsed(text, {.format = ToolCallFormat::kXmlFunction}), text);
  EXPECT_EQ(parsed(text, {.format = ToolCallFormat::kXmlFunction, .tools = std::make_shared<const ToolSchemas>(Json::array())}), text);
  EXPECT_EQ(parsed(text, {.format = ToolCallFormat::kNone, .tools = tools()}), text);
}

TEST(Reply, ThinkingOffHasNoReasoning) {  // E1
  EXPECT_EQ(parsed("answer", xml()), "answer");
  EXPECT_EQ(parsed("a</think>b", xml()), "a</think>b");
  EXPECT_EQ(parsed("answer", thinking(xml())), "(answer)");
}

TEST(Reply, FieldsShareTheTextAmongThem) {  // E2
  EXPECT_EQ(parsed("why</think>answer" + call("ls"), thinking(xml())), "(why)answer[bash{\"command\":\"ls\"}]");
  EXPECT_EQ(parsed("why\n" + call("ls"), thinking(xml())), "(why\n)[bash{\"command\":\"ls\"}]");
  EXPECT_EQ(parsed("<think>why</think></think>", thinking(xml())), "(why)</think>");
  EXPECT_EQ(parsed("why <tool_call>{\"name\":\"f\",\"arguments\":{}}", thinking(json())), "(why )[f{}]");
}

TEST(JsonReply, ContentThenCalls) {
  EXPECT_EQ(parsed("Look. <tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\", \"timeout\": 5.0}}\n</tool_call>\n"
                   "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
                   json()),
            "Look. [bash{\"command\":\"ls\",\"timeout\":5.0}][f{}]");
  EXPECT_EQ(parsed("<tool_call>{\"arguments\": {\"a\": [1, {\"b\": \"}\"}]}, \"name\": \"f\"}</tool_call>", json()), "[f{\"a\":[1,{\"b\":\"}\"}]}]");
  EXPECT_EQ(parsed("<tool_call>{\"name\": \"f\", \"id\": 7, \"arguments\": \"{\\\"a\\\": 1e3}\"}</tool_call>", json()), "[f{\"a\":1e3}]");
  EXPECT_EQ(parsed("<tool_call>{\"name\": \"f\", \"arguments\": null}</tool_call>", json()), "[f{}]");
  EXPECT_EQ(parsed("<tool_call>{\"name\": \"f\"}</tool_call>", json()), "[f{}]");
  EXPECT_EQ(parsed("<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": \"echo '</tool_call>'\"}}</tool_call>", json()),
            "[f{\"s\":\"echo '</tool_call>'\"}]");
}

TEST(JsonReply, ValuesThatAreNoJsonBecomePythonOrText) {
  EXPECT_EQ(parsed("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": True, \"b\": [1,], \"c\": two words, \"d\": \"x\ny\"}}</tool_call>", json()),
            "[f{\"a\":true,\"b\":[1],\"c\":\"two words\",\"d\":\"x\\ny\"}]");
}

TEST(JsonReply, WhatIsNoCallStaysText) {
  for (const char* text : {"<tool_call>", "The tag <tool_call> opens.", "<tool_call>{}</tool_call>", "<tool_call>{\"name\": 5}</tool_call> x",
                           "<tool_call>{\"name\": \"no such\"}</tool_call>", "<tool_call>{\"nam", "{\"name\": \"f\", \"arguments\": {}}",
                           "<tool_call>{name: f}</tool_call>", "<tool_call>[1]</tool_call>", "a <tool_c", "<tool_call>{\"a\": ]}"}) {
    EXPECT_EQ(parsed(text, json()), text);
  }
  EXPECT_EQ(parsed("<tool_call>{oops} <tool_call>{\"name\": \"f\"}</tool_call>", json()), "<tool_call>{oops} [f{}]");
}

TEST(JsonReply, ACallThatBreaksOffIsFlaggedAndValid) {  // D19, D2
  const std::string text = "<tool_call>{\"name\": \"bash\", \"arguments\": {\"timeout\": 5, \"command\": \"ls\"}}</tool_call>";
  for (size_t cut = text.find(", \"arg") + 1; cut <= text.size(); ++cut) {
    const Streamed out = stream(std::string_view(text).substr(0, cut), json(), 5);
    ASSERT_EQ(out.reply.calls.size(), 1u) << cut;
    EXPECT_TRUE(parse_json(out.reply.calls[0].arguments, "arguments").ok()) << out.reply.calls[0].arguments;
    EXPECT_EQ(out.reply.calls[0].complete, cut >= text.find("</tool_call>")) << cut;
  }
  const Streamed broken = stream("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1, b}}</tool_call> end", json(), 3);
  EXPECT_EQ(shown(broken.reply), "[f{\"a\":1}...]");
  EXPECT_EQ(broken.unplaced, ", b}}</tool_call> end");
}

// Tags in every order, as no model should write them.
std::string tag_soup(std::mt19937& random) {
  constexpr std::array kPieces{"<tool_call>", "</tool_call>", "<function=bash>", "<function=other>", "<function=no such>", "</function>",
                               "<parameter=command>", "<parameter=timeout>", "<parameter=other>", "</parameter>", "\n", "\n", "\n", " ", "text", "<",
                               "ü", "5", "</think>", "<think>", "<func", "{", "\"name\":\"f\",", "\"arguments\":{", "\"a\":1", ",", "}", "\""};
  std::string text;
  for (size_t left = random() % 40; left > 0; --left) text += kPieces[random() % kPieces.size()];
  return text;
}

TEST(Reply, AnyMixOfTagsReadsTheSameInPieces) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = tag_soup(random);
    for (const ReplyParserOptions& options : {xml(), json(), thinking(xml()), thinking(json())}) {
      const Streamed whole = stream(text, options, std::max<size_t>(text.size(), 1));
      const Streamed pieces = stream(text, options, 1 + random() % 9);
      ASSERT_EQ(shown(pieces.reply), shown(whole.reply)) << text;
      ASSERT_EQ(pieces.unplaced, whole.unplaced) << text;
      for (const ParsedCall& call : whole.reply.calls) {
        const Result<Json> arguments = parse_json(call.arguments, "arguments");
        ASSERT_TRUE(arguments.ok() && arguments->is_object()) << text;
      }
    }
  }
}

TEST(Reply, AWholeParserMayMove) {
  ReplyParser parser(xml());
  parser.feed("<tool_call>\n<func");
  ReplyParser moved = std::move(parser);
  const std::vector<ReplyDelta> deltas = moved.feed("tion=f>");
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0].text, "f");
}

// Time for a text of that many repetitions, byte by byte.
double seconds_by_byte(const std::string& text, const ReplyParserOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  ReplyParser parser(options);
  size_t deltas = 0;
  for (const char c : text) deltas += parser.feed(std::string_view(&c, 1)).size();
  deltas += parser.finish().size();
  EXPECT_GT(deltas, 0u);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string repeated(std::string_view beginning, std::string_view piece) {
  std::string text(beginning);
  while (text.size() < (size_t{1} << 20)) text += piece;
  return text;
}

// A megabyte a byte at a time takes well under a second; a rescan of what is held for each byte would take minutes.
TEST(Reply, AMegabyteByteByByteIsFast) {
  const std::string value = "<tool_call>\n<function=bash>\n<parameter=command>\n";
  for (const std::string& text :
       {repeated("", "plain text "), repeated("", "<"), repeated("<tool_call>", " "), repeated("<tool_call>", "<tool_call>"),
        repeated("", "<function="), repeated("<function=", "a"), repeated("<tool_call><function={>", "text"), repeated(value, "x"),
        repeated(value, "</parameter>"),
        repeated(value, "</parameter>\n"), repeated(value + "</parameter>", " "), repeated(value, "<function=g><parameter=p>"),
        repeated(value, "</function></tool_call>"), repeated(value, " </function>"), repeated("", call("x")),
        repeated(value, "<parameter=command>\n1\n"),
        repeated("", "<tool_call><function=f>")}) {
    EXPECT_LT(seconds_by_byte(text, xml()), 20.0) << text.substr(0, 80);
  }
  for (const std::string& text :
       {repeated("<tool_call>{\"name\":\"f\",\"arguments\":{", "\"a\":1,"),
        repeated("<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":\"", "x"),
        repeated("", "<tool_call>{\"a\":["), repeated("", "<tool_call>{"), repeated("<tool_call>", " "),
        repeated("<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":", "["),
        repeated("<tool_call>{\"name\":\"", "x")}) {
    EXPECT_LT(seconds_by_byte(text, json()), 20.0) << text.substr(0, 80);
  }
  for (const std::string& text :
       {repeated("", " "), repeated("", "text <"), repeated("<tool_call>", " "), repeated("", "<tool_call>"), repeated("", "<tool_call> ")}) {
    EXPECT_LT(seconds_by_byte(text, thinking(xml())), 20.0) << text.substr(0, 80);
  }
}

}  // namespace
}  // namespace espalier
