// The harness's counts of prompts, from the prompts that the reference implementation made of the agent workload with thinking off: the
// harness leaves thinking to the template, whose prompt then ends in an open think block, which is two tokens shorter.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>

#include "base/file.h"
#include "replay/answer_tokens.h"
#include "replay/workload.h"
#include "tests/support/oracle.h"

namespace espalier {
namespace {

using testing::read_gzip;
using testing::read_jsonl;
using testing::shared_path;

constexpr size_t kTurns = 12;  // of each conversation; later ones only add to them

TEST(AnswerTokensGolden, PromptsOfTheAgentWorkload) {
  ESPALIER_REQUIRE_SHARED();
  const std::string path = shared_path("data/mlperf/agentic_coding_2.5h.jsonl");
  if (::access(path.c_str(), R_OK) != 0) GTEST_SKIP() << path << " is absent";
  const Json tokenizer_json = parse_json(read_gzip(shared_path("oracle/tokenizer/tokenizer.json.gz")), "tokenizer.json").value();
  const std::string source = read_file(shared_path("oracle/chat/chat_template.jinja"), size_t{1} << 20).value();
  const AnswerTokens tokens(Tokenizer::from_json(tokenizer_json, nullptr, "tokenizer.json").value(),
                            ChatTemplate::parse(source, "chat_template.jinja").value());
  std::map<std::pair<std::string, int64_t>, int64_t> expected;
  for (const Json& row : read_jsonl(shared_path("oracle/chat/mlperf_prompts.jsonl"))) {
    expected[{row["conversation_id"].get<std::string>(), row["turn"].get<int64_t>()}] = row["tokens"].get<int64_t>() - 2;
  }
  const Workload workload = load_workload(path).value();
  for (const Conversation& conversation : workload.conversations) {
    for (size_t i = 0; i < kTurns; ++i) {
      const ConversationTurn& turn = conversation.turns[i];
      const int64_t known = expected.at({conversation.id, turn.number});
      ASSERT_EQ(tokens.count_prompt(conversation, turn).value(), known) << conversation.id << " turn " << turn.number;
    }
  }
}

}  // namespace
}  // namespace espalier
