// A snapshot: the only resumable thing. Page references, a state, and the exact prefix they stand for. Owned by the SnapshotTree.
// Engine thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "cache/page_table.h"
#include "cache/state_slot.h"
#include "cache/token_key.h"

namespace espalier {

struct TokenNode;

// Why a snapshot was taken where it is.
enum class SnapshotKind {
  kPromptEnd,
  kUnstableTail,  // before the part of a prompt that the template writes differently next turn
  kReplyEnd,
  kSystemBlock,  // after the system-and-tools block
  kDivergence,   // where an earlier prompt diverged
  kPreempted,    // a sequence set aside to let others run
};
inline constexpr size_t kNumSnapshotKinds = 6;
std::string_view snapshot_kind_name(SnapshotKind kind);  // "prompt_end", ...

struct Snapshot {
  int64_t id = -1;         // given by the tree, never twice
  TokenKey key;
  SnapshotKind kind = SnapshotKind::kPromptEnd;
  uint64_t settings = 0;   // model and settings it is valid for
  PageTable pages;         // of slots [0, key.count)
  StateSlot slot;          // after exactly key.count tokens
  std::chrono::steady_clock::time_point created;
  std::chrono::steady_clock::time_point last_used;
  uint64_t hits = 0;       // sequences resumed from it
  int32_t pins = 0;
  bool continued = false;  // a longer snapshot behind it has been used since: its conversation moved on
  TokenNode* node = nullptr;  // its end in the token tree
  size_t index = 0;           // its place in the tree's list
};

// Keeps a snapshot from eviction. Move-only; empty when default-made or moved from.
class PinnedSnapshot {
 public:
  PinnedSnapshot() = default;
  explicit PinnedSnapshot(Snapshot& snapshot) : snapshot_(&snapshot) { ++snapshot.pins; }
  PinnedSnapshot(PinnedSnapshot&& other) noexcept : snapshot_(std::exchange(other.snapshot_, nullptr)) {}
  PinnedSnapshot& operator=(PinnedSnapshot&& other) noexcept {
    std::swap(snapshot_, other.snapshot_);
    return *this;
  }
  ~PinnedSnapshot() { release(); }

  explicit operator bool() const { return snapshot_ != nullptr; }
  const Snapshot* get() const { return snapshot_; }
  const Snapshot* operator->() const { return snapshot_; }
  void release() {
    if (snapshot_ != nullptr) --std::exchange(snapshot_, nullptr)->pins;
  }

 private:
  friend class PrefixCache;
  Snapshot* snapshot_ = nullptr;
};

}  // namespace espalier
