// The IoU scorer against the official checker: its executed examples, further cases from its specification, and whole runs over the
// recorded workload whose results were measured with the checker itself.
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <map>

#include "replay/iou.h"
#include "replay/workload.h"
#include "tests/support/oracle.h"

namespace espalier {
namespace {

const std::string kWorkloadPath = testing::shared_path("data/mlperf/agentic_coding_2.5h.jsonl");

TEST(ReplayIou, EveryCaseOfTheOracle) {
  ESPALIER_REQUIRE_SHARED();
  const std::vector<Json> cases = testing::read_jsonl(testing::shared_path("oracle/scorer/iou.jsonl"));
  EXPECT_EQ(cases.size(), 77u);
  for (const Json& c : cases) {
    SCOPED_TRACE(c.at("id").get<std::string>());
    const auto recorded = tool_call_actions(c.at("recorded"));
    const auto answered = tool_call_actions(c.at("model"));
    EXPECT_EQ(recorded, c.at("gt_actions").get<std::vector<std::string>>());
    EXPECT_EQ(answered, c.at("model_actions").get<std::vector<std::string>>());
    EXPECT_NEAR(multiset_iou(recorded, answered), c.at("score").get<double>(), 5e-5);
  }
}

// What a made-up model answers: tool calls, or nothing observed.
struct Answer {
  Json tool_calls = Json::array();
  bool observed = true;
};
using Model = std::function<Answer(const Conversation&, const ConversationTurn&, const Json* previous_recorded)>;

Json bash_calls(const std::vector<std::string>& commands) {
  Json calls = Json::array();
  for (const std::string& command : commands) {
    calls.push_back(Json{{"type", "function"}, {"function", Json{{"name", "bash"}, {"arguments", dump_json(Json{{"command", command}})}}}});
  }
  return calls;
}

Model always(const std::vector<std::string>& commands) {
  return [calls = bash_calls(commands)](const Conversation&, const ConversationTurn&, const Json*) { return Answer{calls}; };
}

IouSummary play(const Workload& workload, const Model& model) {
  std::vector<TurnScore> turns;
  for (const Conversation& conversation : workload.conversations) {
    const Json* previous = nullptr;
    for (const ConversationTurn& turn : conversation.turns) {
      const Json* recorded = &conversation.recorded_answer(turn)->at("tool_calls");
      const Answer answer = model(conversation, turn, previous);
      turns.push_back({.conversation_id = conversation.id,
                       .turn = turn.number,
                       .recorded = tool_call_actions(*recorded),
                       .answered = tool_call_actions(answer.tool_calls),
                       .observed = answer.observed});
      previous = recorded;
    }
  }
  return summarise_iou(turns);
}

TEST(ReplayIou, WholeRuns) {
  ESPALIER_REQUIRE_SHARED();
  if (::access(kWorkloadPath.c_str(), R_OK) != 0) GTEST_SKIP() << kWorkloadPath << " is absent";
  const Workload workload = load_workload(kWorkloadPath).value();
  const Model recorded = [](const Conversation& c, const ConversationTurn& turn, const Json*) { return Answer{c.recorded_answer(turn)->at("tool_calls")}; };
  const std::map<std::string, Model> models{
      {"recorded commands", recorded},
      {"empty", always({})},
      {"previous recorded commands", [](const Conversation&, const ConversationTurn&, const Json* previous) { return previous ? Answer{*previous} : Answer{}; }},
      {"ls -la", always({"ls -la"})},
      {"grep -rn foo . | head -5", always({"grep -rn foo . | head -5"})},
      {"cd /testbed && python -m pytest tests", always({"cd /testbed && python -m pytest tests"})},
      {"two calls sed / python|tail", always({"sed -n '1,50p' a.py", "python x.py 2>&1 | tail -20"})},
      {"django__django-16899 fails from client turn 21", [&](const Conversation& c, const ConversationTurn& turn, const Json* previous) {
         return c.id == "django__django-16899" && turn.number >= 21 ? Answer{.observed = false} : recorded(c, turn, previous);
       }}};
  const Json oracle = load_json(testing::shared_path("oracle/scorer/iou_whole_run.json")).value();
  ASSERT_EQ(oracle.at("runs").size(), models.size());
  for (const Json& run : oracle.at("runs")) {
    const std::string answer = run.at("answer").get<std::string>();
    SCOPED_TRACE(answer);
    ASSERT_TRUE(models.contains(answer));
    const IouSummary summary = play(workload, models.at(answer));
    EXPECT_EQ(summary.score, run.at("score").get<double>());
    EXPECT_EQ(summary.expected, oracle.at("scorable").get<int64_t>());
    EXPECT_EQ(summary.missing, answer.starts_with("django") ? 48 : 0);
    EXPECT_EQ(summary.observed, answer.starts_with("django") ? 958 : 1006);
  }
}

TEST(ReplayIou, RecordedActionsOfTheWorkload) {
  if (::access(kWorkloadPath.c_str(), R_OK) != 0) GTEST_SKIP() << kWorkloadPath << " is absent";
  const Workload workload = load_workload(kWorkloadPath).value();
  std::map<std::string, int> totals;
  std::map<size_t, int> turns_by_count;
  for (const Conversation& conversation : workload.conversations) {
    for (const ConversationTurn& turn : conversation.turns) {
      const auto actions = tool_call_actions(conversation.recorded_answer(turn)->at("tool_calls"));
      ++turns_by_count[actions.size()];
      for (const std::string& action : actions) ++totals[action];
    }
  }
  EXPECT_EQ(totals, (std::map<std::string, int>{{"python", 361}, {"grep", 228}, {"sed", 227}, {"cat", 143}, {"head", 134}, {"tail", 84}, {"git", 71},
                                                {"pip", 61},     {"find", 34},  {"ls", 23},   {"rm", 23},   {"xargs", 16}, {"true", 8},  {"mkdir", 7},
                                                {"which", 6},    {"mv", 3},     {"sphinx", 2}, {"conda", 1}, {"cp", 1},    {"sort", 1}}));
  EXPECT_EQ(turns_by_count, (std::map<size_t, int>{{0, 1}, {1, 680}, {2, 266}, {3, 40}, {4, 7}, {5, 8}, {6, 4}, {10, 1}}));
}

}  // namespace
}  // namespace espalier
