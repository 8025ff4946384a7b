#include "cache/cache_stats.h"

namespace espalier {

std::string_view eviction_reason_name(EvictionReason reason) {
  switch (reason) {
    case EvictionReason::kSequence: return "sequence";
    case EvictionReason::kSnapshot: return "snapshot";
    case EvictionReason::kTaken: return "taken";
    case EvictionReason::kCleared: return "cleared";
  }
  return "unknown";
}

}  // namespace espalier
