#include "tests/support/allocation_counter.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> count{0};
std::atomic<bool> failed{false};
thread_local int64_t left_until_failure = 0;

void count_allocation() {
  ++count;
  if (left_until_failure > 0 && --left_until_failure == 0) {
    failed = true;
    throw std::bad_alloc();
  }
}
}  // namespace

// Every other form of new ends in these; the one that does not throw is AddressSanitizer's own otherwise, and would not match our delete.
void* operator new(size_t bytes) {
  count_allocation();
  void* data = std::malloc(bytes == 0 ? 1 : bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  count_allocation();
  const auto align = static_cast<size_t>(alignment);
  void* data = std::aligned_alloc(align, (bytes + align - 1) / align * align);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (...) {
    return nullptr;
  }
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, size_t, std::align_val_t) noexcept { std::free(data); }

namespace espalier::testing {

int64_t num_allocations() { return count; }

bool an_allocation_failed() { return failed.exchange(false); }

void fail_allocation(int64_t n) { left_until_failure = n; }

}  // namespace espalier::testing
