#include "ops/copy.h"

#include <cstring>

#include "backend/cpu/cpu_ops.h"

namespace espalier::cpu {

void CpuOps::copy(const CopyArgs& args) {
  for_ranges(static_cast<int64_t>(args.bytes), 1 << 18,
             [&](int64_t begin, int64_t end, int) { std::memcpy(args.to + begin, args.from + begin, static_cast<size_t>(end - begin)); });
}

}  // namespace espalier::cpu
