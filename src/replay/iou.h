// The agent benchmark's score of an answer: which programs do its shell commands run, compared with those of the recorded answer as
// multisets. Order, arguments and paths do not count. The rules are the official checker's, quirks included (it is no shell parser).
// Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace espalier {

// The actions of a shell command, in order: quoted stretches are cut out, the rest is split at `|`, `||`, `&&`, `;` and newlines, and the
// first word of each piece after assignments and prefixes such as `sudo` is looked up by its base name ("/usr/bin/python3.8" -> "python").
// Unknown words give nothing.
std::vector<std::string> command_actions(std::string_view command);

// The actions of an assistant message's `tool_calls` (OpenAI shape): those of every call of `bash` with a string `command` (or `cmd`).
// Anything malformed is skipped, call by call; a value that is not an array has none.
std::vector<std::string> tool_call_actions(const Json& tool_calls);

// Intersection over union of two multisets; 0 where both are empty.
double multiset_iou(std::span<const std::string> recorded, std::span<const std::string> answered);

// One issued turn.
struct TurnScore {
  std::string conversation_id;
  int64_t turn = 0;
  std::vector<std::string> recorded = {};  // actions of the recorded answer; a turn without any is not scored
  std::vector<std::string> answered = {};
  bool observed = true;  // an answer arrived, be it an empty one
};

struct IouSummary {
  double score = 0.0;    // mean over the expected turns, to 4 decimals
  int64_t expected = 0;  // scored turns: issued, with recorded actions
  int64_t observed = 0;
  int64_t missing = 0;   // expected - observed; they score 0
};

// The mean is taken in the order of (conversation id, turn), whatever the order of `turns`.
IouSummary summarise_iou(std::span<const TurnScore> turns);

}  // namespace espalier
