// What a replay measured, as one JSON object for programs and one screen for people. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "replay/iou.h"
#include "replay/statistics.h"

namespace espalier {

struct ReplayReport {
  int64_t turns_ok = 0;
  int64_t turns_failed = 0;   // those not sent because an earlier turn of the conversation failed included
  int64_t prompt_tokens = 0;
  int64_t hot_tokens = 0;     // prompt tokens served from a cache
  int64_t output_tokens = 0;
  std::string token_counts = {};  // who counted them; for people
  double wall_s = 0.0;
  SeriesSummary ttft_ms;      // issue to first token; turns without a token have no sample
  SeriesSummary tpot_ms;      // first token to end, per token after the first chunk
  SeriesSummary latency_ms;   // issue to end, of failed turns too
  IouSummary iou;
  std::map<std::string, int64_t> finish_reasons;
  std::map<std::string, int64_t> cold_reasons;  // why the first cold token of a prompt was cold: turns per kind of reason
  std::vector<std::string> failures;            // the first few, one line each

  // In [0, 1]; 0 without prompts.
  double hot_share() const;
};

// Exactly the keys turns_ok, turns_failed, prompt_tokens, hot_tokens, output_tokens, wall_s, ttft_ms, tpot_ms, latency_ms, iou,
// finish_reasons. `iou` is null where no turn could be scored.
Json to_json(const ReplayReport& report);

// Aligned lines, each ended by a newline.
std::string to_table(const ReplayReport& report);

// The kind of an explanation: its numbers become "#", so that "diverged at token 1500" and "... 17" are one kind.
std::string cold_reason_kind(std::string_view explanation);

}  // namespace espalier
