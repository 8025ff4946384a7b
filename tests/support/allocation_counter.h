// Counts calls of operator new in the whole program, and makes one fail. Linked only into the tests that ask.
#pragma once

#include <cstdint>

namespace espalier::testing {

int64_t num_allocations();

// The n-th allocation that the calling thread makes from now on throws std::bad_alloc, that one alone; 0: none does.
void fail_allocation(int64_t n);
// Whether it came to that, in any thread, since the last call.
bool an_allocation_failed();

}  // namespace espalier::testing
