// Owning, zeroed, 64-byte aligned memory. Move-only. Large buffers are mapped directly and ask for huge pages.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace espalier {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t bytes);  // aborts when the system has no memory left
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer();

  void* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

// An address range of `bytes` whose memory comes into being (zeroed) when first touched and can be given back piece by piece.
// Move-only. Offsets and lengths of `discard` are rounded inwards to system pages.
class ReservedRange {
 public:
  ReservedRange() = default;
  static Result<ReservedRange> reserve(size_t bytes);  // kResourceExhausted when the system has no such range
  ReservedRange(ReservedRange&& other) noexcept;
  ReservedRange& operator=(ReservedRange&& other) noexcept;
  ReservedRange(const ReservedRange&) = delete;
  ReservedRange& operator=(const ReservedRange&) = delete;
  ~ReservedRange();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  void discard(size_t offset, size_t length) const;

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace espalier
