// Every prompt of the agent workload and of the function-calling set: hashes of the text and of the token ids that the reference
// implementation makes of them (../shared/oracle/chat/*_prompts.jsonl), by way of the same normalisation that serves requests.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "chat/messages.h"
#include "chat/prompt.h"
#include "replay/workload.h"
#include "tests/support/oracle.h"
#include "tokenizer/tokenizer.h"

namespace espalier {
namespace {

using testing::read_gzip;
using testing::read_jsonl;
using testing::sha256_hex;
using testing::shared_path;

const Tokenizer& qwen() {
  static const std::shared_ptr<const Tokenizer> tokenizer =
      Tokenizer::from_json(parse_json(read_gzip(shared_path("oracle/tokenizer/tokenizer.json.gz")), "tokenizer.json").value(), nullptr,
                           "tokenizer.json")
          .value();
  return *tokenizer;
}

const ChatTemplate& qwen_template() {
  static const std::shared_ptr<const ChatTemplate> chat_template =
      ChatTemplate::parse(read_file(shared_path("oracle/chat/chat_template.jinja"), size_t{1} << 20).value(), "chat_template.jinja")
          .value();
  return *chat_template;
}

// SHA-256 of the ids as little-endian 32-bit numbers.
std::string ids_hash(const std::vector<TokenId>& ids) {
  std::string bytes;
  for (const TokenId id : ids) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(static_cast<uint32_t>(id) >> shift);
  }
  return sha256_hex(bytes);
}

void expect_prompt(const Json& messages, const Json& tools, const Json& expected) {
  const Result<ChatInput> input = normalise_messages(messages, tools);
  ASSERT_TRUE(input.ok()) << input.error().message;
  const Result<MarkedText> prompt = qwen_template().render(*input, {});
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_EQ(prompt->size(), expected["bytes"].get<size_t>());
  EXPECT_EQ(sha256_hex(prompt->text), expected["text_sha256"].get<std::string>());
  const std::vector<TokenId> ids = qwen().encode(*prompt);
  EXPECT_EQ(ids.size(), expected["tokens"].get<size_t>());
  EXPECT_EQ(ids_hash(ids), expected["ids_sha256"].get<std::string>());
}

TEST(ChatPromptsGolden, AgentWorkload) {
  ESPALIER_REQUIRE_SHARED();
  const std::string path = shared_path("data/mlperf/agentic_coding_2.5h.jsonl");
  if (::access(path.c_str(), R_OK) != 0) GTEST_SKIP() << path << " is absent";
  const Workload workload = load_workload(path).value();
  std::map<std::pair<std::string, int64_t>, Json> expected;
  for (const Json& row : read_jsonl(shared_path("oracle/chat/mlperf_prompts.jsonl"))) {
    expected[{row["conversation_id"].get<std::string>(), row["turn"].get<int64_t>()}] = row;
  }
  ASSERT_EQ(expected.size(), 1007u);
  size_t seen = 0;
  for (const Conversation& conversation : workload.conversations) {
    Json messages = Json::array();
    for (const ConversationTurn& turn : conversation.turns) {
      while (messages.size() < turn.num_messages) messages.push_back(conversation.messages[messages.size()]);
      const auto row = expected.find({conversation.id, turn.number});
      ASSERT_NE(row, expected.end()) << conversation.id << " turn " << turn.number;
      SCOPED_TRACE(conversation.id + " turn " + std::to_string(turn.number));
      expect_prompt(messages, conversation.tools, row->second);
      ++seen;
    }
  }
  EXPECT_EQ(seen, expected.size());
}

TEST(ChatPromptsGolden, FunctionCallingSet) {
  ESPALIER_REQUIRE_SHARED();
  const std::string path = shared_path("data/mlperf/bfcl_calib.jsonl");
  if (::access(path.c_str(), R_OK) != 0) GTEST_SKIP() << path << " is absent";
  const std::vector<Json> rows = read_jsonl(path);
  const std::vector<Json> expected = read_jsonl(shared_path("oracle/chat/bfcl_calib_prompts.jsonl"));
  ASSERT_EQ(expected.size(), 364u);
  for (const Json& row : expected) {
    const Json& request = rows.at(row["row"].get<size_t>());
    SCOPED_TRACE("row " + row["row"].dump());
    expect_prompt(request["messages"], request["tools"], row);
  }
}

}  // namespace
}  // namespace espalier
