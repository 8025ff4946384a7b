// The CPU backend: BF16 activations, keys and values; packed BF16 weights; one kernel table chosen at start. "A row is a row" bit for
// bit within a table (architecture, idea 1). Used by one thread at a time; runs its ops on a pool of its own.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "base/result.h"

namespace espalier {

struct CpuOptions {
  int threads = 0;       // 0: the physical cores this process may use
  std::string isa = {};  // "avx2", "avx512", "amx", "neon"; empty: ESPALIER_ISA, or else the best one
};

// kUnsupported when the instruction set is unknown or impossible on this processor.
Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options);

}  // namespace espalier
