// A recorded agent workload: conversations whose every turn is replayed with the recorded history, so that each engine sees the same
// prompts. Reads the conversation files of the MLPerf edge-agentic benchmark: JSON lines, one row a user message, a recorded assistant
// message or the results of tools. Plain data, immutable once read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace espalier {

// One request: what the agent sends after its user's message or its tools' results.
struct ConversationTurn {
  int64_t number = 0;       // of its row, counted from 1 over all rows of the conversation
  size_t num_messages = 0;  // the prompt is this many leading messages of the conversation
};

struct Conversation {
  std::string id;
  std::vector<Json> messages;  // OpenAI shape: the system message if there is one, then every row in order, recorded answers included
  Json tools;                  // array; null where the conversation declares none
  std::vector<ConversationTurn> turns;

  // The assistant message recorded after `turn`; null if the file ends before it.
  const Json* recorded_answer(const ConversationTurn& turn) const;
};

struct Workload {
  std::string source;  // for messages
  std::vector<Conversation> conversations;

  size_t num_turns() const;
};

struct WorkloadLimits {
  size_t max_bytes = size_t{1} << 30;
  size_t max_line_bytes = size_t{64} << 20;
};

// As strict as the official loader: rows of a conversation stand together and are numbered 1, 2, 3, ...; it begins with a user; an
// assistant row (with text or calls) follows each user or tool row; tool rows answer an assistant row with calls, user rows one
// without. Rows marked as dataset metadata and empty lines are skipped. A value of a row that would change its request and that this
// reader does not carry (`model`, token limits, `stream`, tools other than the first row's) is an error rather than a different prompt.
// Every error names file and line.
Result<Workload> parse_workload(std::string_view text, std::string_view source, const WorkloadLimits& limits = {});
Result<Workload> load_workload(const std::string& path, const WorkloadLimits& limits = {});

}  // namespace espalier
