// What the cache is told about the model: sizes only. The engine derives it from the model and the backend.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "ops/kv_layout.h"
#include "ops/state_layout.h"

namespace espalier {

struct CacheSpec {
  KvLayout kv;
  StateLayout state;
  size_t budget_bytes = 0;  // hard limit for pages and states together: in use, cached and kept free
};

// The time entries age by. Injected so that tests can turn it.
using CacheClock = std::function<std::chrono::steady_clock::time_point()>;

}  // namespace espalier
