// The conversation that the benchmarks of a turn play: an agent that reads one file after the other. Of our own making.
#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"

namespace espalier::bench {

inline Json agent_tools() {
  return {{{"type", "function"}, {"function", {{"name", "bash"}, {"description", "Run a command."}, {"parameters", {{"type", "object"}}}}}}};
}

// Grows by a command and its output of `lines` functions each turn.
inline void append_turn(Json& messages, size_t turn, int lines) {
  const std::string number = std::to_string(turn);
  messages.push_back({{"role", "assistant"},
                      {"reasoning_content", "The next file is part_" + number + ".py."},
                      {"tool_calls", {{{"id", "call_" + number}, {"type", "function"},
                                       {"function", {{"name", "bash"}, {"arguments", "{\"command\": \"sed -n '1,80p' part_" + number + ".py\"}"}}}}}}});
  std::string output = "<returncode>0</returncode>\n<output>\n";
  for (int line = 0; line < lines; ++line) output += "def total_" + number + "_" + std::to_string(line) + "(rows):\n    return sum(row.cents for row in rows)\n";
  messages.push_back({{"role", "tool"}, {"tool_call_id", "call_" + number}, {"content", output + "</output>"}});
}

inline Json agent_conversation(size_t turns) {
  Json messages = {{{"role", "system"}, {"content", "You are a careful programmer who works in a shell."}},
                   {{"role", "user"}, {"content", "Repair the totals in ledger/parse.py and show that all tests pass."}}};
  for (size_t i = 0; i < turns; ++i) append_turn(messages, i, 24);
  return messages;
}

}  // namespace espalier::bench
