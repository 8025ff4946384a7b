#include "cache/snapshot.h"

namespace espalier {

std::string_view snapshot_kind_name(SnapshotKind kind) {
  switch (kind) {
    case SnapshotKind::kPromptEnd: return "prompt_end";
    case SnapshotKind::kUnstableTail: return "unstable_tail";
    case SnapshotKind::kReplyEnd: return "reply_end";
    case SnapshotKind::kSystemBlock: return "system_block";
    case SnapshotKind::kDivergence: return "divergence";
    case SnapshotKind::kPreempted: return "preempted";
  }
  return "unknown";
}

}  // namespace espalier
