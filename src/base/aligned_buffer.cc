#include "base/aligned_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace espalier {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMapFrom = size_t{1} << 20;  // buffers of at least this size are mapped

void* map_zeroed(size_t bytes, int extra_flags) {
  return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra_flags, -1, 0);
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  if (bytes >= kMapFrom) {
    data_ = map_zeroed(bytes, 0);
    ESPALIER_CHECK(data_ != MAP_FAILED && "out of memory");
    ::madvise(data_, bytes, MADV_HUGEPAGE);
    return;
  }
  data_ = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  ESPALIER_CHECK(data_ != nullptr && "out of memory");
  std::memset(data_, 0, bytes);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ == nullptr) return;
  if (size_ >= kMapFrom) {
    ::munmap(data_, size_);
  } else {
    std::free(data_);
  }
}

Result<ReservedRange> ReservedRange::reserve(size_t bytes) {
  ReservedRange range;
  if (bytes == 0) return range;
  void* data = map_zeroed(bytes, MAP_NORESERVE);
  if (data == MAP_FAILED) return make_error(ErrorCode::kResourceExhausted, "cannot reserve {} bytes of address space: {}", bytes, std::strerror(errno));
  range.data_ = static_cast<std::byte*>(data);
  range.size_ = bytes;
  return range;
}

ReservedRange::ReservedRange(ReservedRange&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

ReservedRange& ReservedRange::operator=(ReservedRange&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

ReservedRange::~ReservedRange() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void ReservedRange::discard(size_t offset, size_t length) const {
  ESPALIER_CHECK(offset <= size_ && length <= size_ - offset);
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + length) / page * page;
  if (begin < end) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

}  // namespace espalier
