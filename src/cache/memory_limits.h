// How much memory this process may still take: what the machine has left and what its control groups allow. Read-only.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace espalier {

struct MemoryLimits {
  size_t available_bytes = 0;  // the smaller of the two sides
  std::string source;          // what decided: "MemAvailable" or the cgroup file that limits
};

// Reads /proc/meminfo, /proc/self/cgroup and the memory limits (cgroup v1 and v2) of the process's group and all its parents, under
// `root` (tests give a directory). Page cache that the group can drop counts as available.
Result<MemoryLimits> read_memory_limits(const std::string& root = "");

// Cache budget from available bytes: what is left after `planned_bytes` (weights, activations still to be loaded) and a reserve for
// everything else: an eighth of what is left, at least 256 MiB. 0 when nothing is left.
size_t default_cache_budget(size_t available_bytes, size_t planned_bytes);

}  // namespace espalier
