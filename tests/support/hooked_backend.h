// A backend that calls a function at the beginning of every pass, on the thread that computes it: for tests that need something to happen, or to
// fail, at an exact moment.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "backend/backend.h"

namespace espalier::testing {

// The number of the pass, from 1. What it throws comes out of the pass.
using PassHook = std::function<void(int64_t pass)>;

std::unique_ptr<Backend> hook_passes(std::unique_ptr<Backend> backend, PassHook hook);

}  // namespace espalier::testing
