// One reservation of backend memory, handed out front to back. Pieces live as long as the arena.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "backend/backend.h"
#include "base/result.h"
#include "tensor/tensor.h"

namespace espalier {

class BackendArena {
 public:
  // Hands out nothing, but counts: what a layout would take.
  BackendArena() = default;

  static Result<BackendArena> reserve(Backend& backend, size_t bytes) {
    BackendArena arena;
    ESPALIER_ASSIGN(arena.memory_, backend.reserve(bytes));
    return arena;
  }

  // 64-byte aligned and zeroed; null while counting.
  std::byte* take(size_t bytes) {
    const size_t offset = used_;
    used_ += (bytes + 63) / 64 * 64;
    if (memory_ == nullptr) return nullptr;
    ESPALIER_CHECK(used_ <= memory_->size_bytes());
    return memory_->data() + offset;
  }
  TensorView take(DType dtype, const Shape& shape) {
    TensorView view{nullptr, dtype, shape};
    view.data = take(view.size_bytes());
    return view;
  }

  size_t used_bytes() const { return used_; }
  // Hands out again what was taken since `used_bytes()` was `mark`: for pieces that are never in use together.
  void rewind(size_t mark) { used_ = mark; }

 private:
  std::unique_ptr<BackendMemory> memory_;
  size_t used_ = 0;
};

}  // namespace espalier
