// Which kernel tables this machine can run, and which one is used.
#pragma once

#include <string_view>
#include <vector>

#include "backend/cpu/kernels/kernel_table.h"
#include "base/result.h"

namespace espalier::cpu {

// Best first. Where the processor has AVX-512 but no AMX, "amx-twin" stands in for "amx" at the end: the same arithmetic, far slower.
std::vector<const KernelTable*> available_tables();

// By name; an empty name takes the best. An unknown or impossible one is an error that lists what there is.
Result<const KernelTable*> choose_table(std::string_view name);

}  // namespace espalier::cpu
