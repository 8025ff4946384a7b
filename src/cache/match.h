// The answer to "how much of this prompt is hot, and why not more?". Engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cache/snapshot.h"

namespace espalier {

// Why the first cold token of a prompt is cold.
enum class ColdReason {
  kNewText,            // nothing is known behind the hot part: a conversation that grew
  kNoCommonPrefix,     // no known prompt begins like this one
  kDiverged,           // known prompts go on differently from here
  kNoSnapshot,         // more of the text is known, but no state was kept there
  kEvicted,            // a longer snapshot was there and had to go
  kDifferentSettings,  // known under another model or other settings
  kNoRoom,             // a snapshot is there, but its memory is promised to running sequences
};
std::string_view cold_reason_name(ColdReason reason);  // "new_text", ...

struct Match {
  PinnedSnapshot snapshot;     // the longest usable one, pinned; empty: start from nothing
  size_t num_hot = 0;          // tokens it stands for (usable)
  size_t num_known = 0;        // tokens of the prompt that are known text: what attention alone could have reused (>= num_hot)
  uint64_t settings = 0;       // the sequence opened from it belongs to these
  ColdReason reason = ColdReason::kNewText;
  size_t evicted_count = 0;    // kEvicted: length of the snapshot that went
  double evicted_age_s = 0;    // kEvicted: how long ago
  size_t other_count = 0;      // kDifferentSettings: tokens known there

  // One line with the numbers: "diverged from every known prompt at token 1500".
  std::string explanation() const;
};

}  // namespace espalier
