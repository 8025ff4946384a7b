#include "ops/copy.h"

#include <cstring>

#include "backend/reference/reference_ops.h"

namespace espalier {

void ReferenceOps::copy(const CopyArgs& args) { std::memcpy(args.to, args.from, args.bytes); }

}  // namespace espalier
