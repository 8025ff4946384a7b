// Moves bytes inside backend memory.
#pragma once

#include <cstddef>

namespace espalier {

// to[0, bytes) = from[0, bytes); both backend memory, not overlapping.
struct CopyArgs {
  const std::byte* from;
  std::byte* to;
  size_t bytes;
};

}  // namespace espalier
