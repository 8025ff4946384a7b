#include "cache/match.h"

#include "base/format.h"

namespace espalier {

std::string_view cold_reason_name(ColdReason reason) {
  switch (reason) {
    case ColdReason::kNewText: return "new_text";
    case ColdReason::kNoCommonPrefix: return "no_common_prefix";
    case ColdReason::kDiverged: return "diverged";
    case ColdReason::kNoSnapshot: return "no_snapshot";
    case ColdReason::kEvicted: return "evicted";
    case ColdReason::kDifferentSettings: return "different_settings";
    case ColdReason::kNoRoom: return "no_room";
  }
  return "unknown";
}

std::string Match::explanation() const {
  switch (reason) {
    case ColdReason::kNewText: return format("new text from token {}", num_hot);
    case ColdReason::kNoCommonPrefix: return "no common prefix with any known prompt";
    case ColdReason::kDiverged: return format("diverged from known prompts at token {}", num_known);
    case ColdReason::kNoSnapshot:
      return format("no snapshot between token {} and token {}: {} tokens are known, {} usable", num_hot, num_known, num_known, num_hot);
    case ColdReason::kEvicted:
      return format("snapshot of {} tokens was evicted {:.0f} s ago: {} tokens usable", evicted_count, evicted_age_s, num_hot);
    case ColdReason::kDifferentSettings: return format("different model or settings: {} tokens are known under others", other_count);
    case ColdReason::kNoRoom: return "no room to resume a snapshot: its memory is promised to running sequences";
  }
  return "unknown";
}

}  // namespace espalier
