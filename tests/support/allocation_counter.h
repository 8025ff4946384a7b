// Counts calls of operator new in the whole program. Linked only into the tests that ask.
#pragma once

#include <cstdint>

namespace espalier::testing {

int64_t num_allocations();

}  // namespace espalier::testing
