// Replies and what they say, by the reference model of the contract (../shared/oracle/tools): whole, at every byte and in random bursts.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "chat/reply_parser.h"
#include "chat/tool_schemas.h"
#include "tests/support/oracle.h"

namespace espalier {
namespace {

using testing::read_jsonl;
using testing::shared_path;

struct Case {
  std::string id;
  std::string text;
  Json expected;
};

std::vector<Case> read_cases(const std::string& file) {
  std::vector<Case> cases;
  for (Json& row : read_jsonl(shared_path("oracle/tools/" + file))) {
    cases.push_back({row.at("id").get<std::string>(), row.at("text").get<std::string>(), row});
  }
  return cases;
}

ReplyParserOptions with_tools() {
  static const auto tools = std::make_shared<const ToolSchemas>(load_json(shared_path("oracle/tools/tools.json")).value());
  return {.format = ToolCallFormat::kXmlFunction, .tools = tools};
}

// Equal values of equal kinds: 12 is not 12.0.
bool same_json(const Json& a, const Json& b) {
  if (a.is_number_float() != b.is_number_float() || a.size() != b.size()) return false;
  if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items()) {
      if (!b.contains(key) || !same_json(value, b.at(key))) return false;
    }
    return true;
  }
  if (a.is_array() && b.is_array()) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (!same_json(a[i], b[i])) return false;
    }
    return true;
  }
  return a == b;
}

void expect_same(const ParsedReply& reply, const ParsedReply& other) {
  EXPECT_EQ(reply.reasoning, other.reasoning);
  EXPECT_EQ(reply.content, other.content);
  ASSERT_EQ(reply.calls.size(), other.calls.size());
  for (size_t i = 0; i < reply.calls.size(); ++i) {
    EXPECT_EQ(reply.calls[i].name, other.calls[i].name);
    EXPECT_EQ(reply.calls[i].arguments, other.calls[i].arguments);
    EXPECT_EQ(reply.calls[i].complete, other.calls[i].complete);
  }
}

void feed(ReplyParser& parser, ParsedReply& reply, std::string_view text) {
  for (const ReplyDelta& delta : parser.feed(text)) reply.add(delta);
}
void finish(ReplyParser& parser, ParsedReply& reply) {
  for (const ReplyDelta& delta : parser.finish()) reply.add(delta);
}

size_t content_allowed(const Json& run_lengths, size_t bytes) {
  size_t allowed = 0;
  for (const Json& run : run_lengths) {
    if (run[0].get<size_t>() <= bytes) allowed = run[1].get<size_t>();
  }
  return allowed;
}

// What of a case may have been sent after `bytes`: content and names have to be there by then, parameters must not be there before.
void expect_within_bounds(const Case& c, const ParsedReply& reply, size_t bytes) {
  EXPECT_EQ(reply.content.size(), content_allowed(c.expected.at("max_content_bytes"), bytes));
  const Json& calls = c.expected.at("calls");
  ASSERT_LE(reply.calls.size(), calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(reply.calls.size() > i, bytes >= calls[i].at("name_at").get<size_t>());
    if (reply.calls.size() <= i) continue;
    const ParsedCall& call = reply.calls[i];
    size_t allowed = 0;
    for (const Json& parameter : calls[i].at("params")) allowed += parameter.at("complete_at").get<size_t>() <= bytes;
    const std::string closed = call.arguments.empty() ? "{}" : call.complete ? call.arguments : call.arguments + "}";
    const Result<Json> arguments = parse_json(closed, "arguments so far");
    ASSERT_TRUE(arguments.ok()) << closed;
    EXPECT_LE(arguments->size(), allowed) << closed;
    EXPECT_TRUE(call.complete || reply.calls.size() == i + 1) << "a call ends before the next one begins";
  }
}

TEST(ReplyParser, EveryReplyOfTheOracle) {
  ESPALIER_REQUIRE_SHARED();
  const std::vector<Case> cases = read_cases("parse.jsonl");
  EXPECT_EQ(cases.size(), 167u);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.id);
    const ParsedReply reply = parse_reply(c.text, with_tools());
    EXPECT_EQ(reply.content, c.expected.at("content").get<std::string>());
    const Json& calls = c.expected.at("calls");
    ASSERT_EQ(reply.calls.size(), calls.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(reply.calls[i].name, calls[i].at("name").get<std::string>());
      const Result<Json> arguments = parse_json(reply.calls[i].arguments, "arguments");
      ASSERT_TRUE(arguments.ok()) << reply.calls[i].arguments;
      EXPECT_TRUE(same_json(*arguments, parse_json(calls[i].at("arguments").get<std::string>(), "expected").value()))
          << reply.calls[i].arguments;
    }
  }
}

TEST(ReplyParser, EveryByteOfEveryReplyOfTheOracle) {
  ESPALIER_REQUIRE_SHARED();
  for (const Case& c : read_cases("parse.jsonl")) {
    const ParsedReply whole = parse_reply(c.text, with_tools());
    for (size_t cut = 0; cut <= c.text.size(); ++cut) {
      SCOPED_TRACE(c.id + ", cut after " + std::to_string(cut));
      ReplyParser parser(with_tools());
      ParsedReply reply;
      feed(parser, reply, std::string_view(c.text).substr(0, cut));
      expect_within_bounds(c, reply, cut);
      feed(parser, reply, std::string_view(c.text).substr(cut));
      finish(parser, reply);
      expect_same(reply, whole);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(ReplyParser, AnyBurstsGiveTheSameReply) {
  ESPALIER_REQUIRE_SHARED();
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const Case& c : read_cases("parse.jsonl")) {
    SCOPED_TRACE(c.id);
    const ParsedReply whole = parse_reply(c.text, with_tools());
    for (int round = 0; round < 60; ++round) {
      const size_t longest = round == 0 ? 1 : 1 + random() % 40;
      ReplyParser parser(with_tools());
      ParsedReply reply;
      for (size_t at = 0; at < c.text.size();) {
        const size_t size = 1 + random() % longest;
        feed(parser, reply, std::string_view(c.text).substr(at, size));
        at = std::min(at + size, c.text.size());
        expect_within_bounds(c, reply, at);
      }
      finish(parser, reply);
      expect_same(reply, whole);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(ReplyParser, ReasoningOfTheOracleAtEveryByte) {
  ESPALIER_REQUIRE_SHARED();
  const std::vector<Case> cases = read_cases("reasoning.jsonl");
  EXPECT_EQ(cases.size(), 8u);
  for (const Case& c : cases) {
    ReplyParserOptions options{.format = ToolCallFormat::kXmlFunction, .starts_in_reasoning = c.expected.at("thinking").get<bool>()};
    const std::string reasoning = c.expected.at("reasoning").get<std::string>();
    const std::string content = c.expected.at("content").get<std::string>();
    for (size_t cut = 0; cut <= c.text.size(); ++cut) {
      SCOPED_TRACE(c.id + ", cut after " + std::to_string(cut));
      ReplyParser parser(options);
      ParsedReply reply;
      feed(parser, reply, std::string_view(c.text).substr(0, cut));
      EXPECT_TRUE(reasoning.starts_with(reply.reasoning)) << reply.reasoning;
      EXPECT_TRUE(content.starts_with(reply.content)) << reply.content;
      feed(parser, reply, std::string_view(c.text).substr(cut));
      finish(parser, reply);
      EXPECT_EQ(reply.reasoning, reasoning);
      EXPECT_EQ(reply.content, content);
      EXPECT_TRUE(reply.calls.empty());
    }
  }
}

}  // namespace
}  // namespace espalier
