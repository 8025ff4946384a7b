// Working memory of the ops: grows when a pass is larger than any before, never shrinks, so a warm pass allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned_buffer.h"

namespace espalier::cpu {

class Scratch {
 public:
  // Memory for `count` elements; what it held before is lost when it grows.
  template <typename T>
  T* get(int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    if (bytes > buffer_.size()) buffer_ = AlignedBuffer(bytes);
    return static_cast<T*>(buffer_.data());
  }

 private:
  AlignedBuffer buffer_;
};

}  // namespace espalier::cpu
