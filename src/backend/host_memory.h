// BackendMemory of the backends that compute on the host: reserved addresses, memory on first touch.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "base/result.h"

namespace espalier {

// `bytes` of zeroed host memory, 64-byte aligned. kResourceExhausted where the address range cannot be had.
Result<std::unique_ptr<BackendMemory>> reserve_host_memory(size_t bytes);

}  // namespace espalier
