// The oracle of the other backends: scalar loops written from the contracts, FP32 values, double sums. Slow on purpose; one thread.
// Unlike what Ops asks of the others, its ops may allocate scratch.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace espalier {

std::unique_ptr<Backend> make_reference_backend();

}  // namespace espalier
