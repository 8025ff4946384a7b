// The official workload: its shape and the bytes of all its requests, against hashes made by two independent programs.
#include <gtest/gtest.h>
#include <unistd.h>

#include "replay/request_body.h"
#include "replay/workload.h"
#include "tests/support/oracle.h"

namespace espalier {
namespace {

const std::string kPath = testing::shared_path("data/mlperf/agentic_coding_2.5h.jsonl");

#define ESPALIER_REQUIRE_WORKLOAD() \
  if (::access(kPath.c_str(), R_OK) != 0) GTEST_SKIP() << kPath << " is absent"

TEST(ReplayRequest, WorkloadHasTheKnownShape) {
  ESPALIER_REQUIRE_WORKLOAD();
  const Workload workload = load_workload(kPath).value();
  std::vector<size_t> turns;
  size_t calls = 0, answers = 0;
  for (const Conversation& conversation : workload.conversations) {
    turns.push_back(conversation.turns.size());
    EXPECT_EQ(conversation.tools.size(), 1u);
    for (const ConversationTurn& turn : conversation.turns) {
      EXPECT_EQ(turn.number % 2, 1);
      const Json* answer = conversation.recorded_answer(turn);
      ASSERT_NE(answer, nullptr);
      ++answers;
      calls += answer->at("tool_calls").size();
      EXPECT_FALSE(answer->contains("content"));
    }
  }
  EXPECT_EQ(turns, (std::vector<size_t>{58, 58, 58, 52, 53, 52, 47, 61, 44, 27, 56, 52, 55, 50, 46, 48, 44, 48, 43, 55}));
  EXPECT_EQ(workload.num_turns(), 1007u);
  EXPECT_EQ(answers, 1007u);
  EXPECT_EQ(calls, 1012u);
}

TEST(ReplayRequest, BodiesAreThoseOfTheHarness) {
  ESPALIER_REQUIRE_WORKLOAD();
  const Workload workload = load_workload(kPath).value();
  std::string all;
  size_t largest = 0, most_messages = 0;
  for (const Conversation& conversation : workload.conversations) {
    for (const ConversationTurn& turn : conversation.turns) {
      const std::string body = request_body(conversation, turn);
      if (all.empty()) {
        EXPECT_EQ(body.size(), 5908u);
        EXPECT_EQ(testing::sha256_hex(body), "80118c0c1338d860aff61f163acfa13421d8cfaf81a8d2ef70a3545eaa8528e7");
      }
      largest = std::max(largest, body.size());
      most_messages = std::max(most_messages, turn.num_messages);
      all += body;
      all += '\n';
    }
  }
  EXPECT_EQ(largest, 109993u);
  EXPECT_EQ(most_messages, 122u);
  EXPECT_EQ(all.size(), 53824521u + 1007u);
  EXPECT_EQ(testing::sha256_hex(all), "53db894bf4886caf8d30b5cabd0e99cbe302fdb59790974dc881d24aa959a37a");
}

}  // namespace
}  // namespace espalier
