#include "backend/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/aligned_buffer.h"

namespace espalier {
namespace {

class HostMemory final : public BackendMemory {
 public:
  explicit HostMemory(ReservedRange range) : range_(std::move(range)) {}

  std::byte* data() const override { return range_.data(); }
  size_t size_bytes() const override { return range_.size(); }

  void discard(size_t offset, size_t length) override {
    ESPALIER_CHECK(offset <= range_.size() && length <= range_.size() - offset);
    // The system takes whole pages; the ragged ends are cleared by hand so that all of it reads as zero.
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t end = offset + length;
    const size_t head_end = std::min(end, (offset + page - 1) / page * page);
    const size_t tail_begin = std::max(head_end, end / page * page);
    std::memset(range_.data() + offset, 0, head_end - offset);
    range_.discard(head_end, tail_begin - head_end);
    std::memset(range_.data() + tail_begin, 0, end - tail_begin);
  }

 private:
  ReservedRange range_;
};

}  // namespace

Result<std::unique_ptr<BackendMemory>> reserve_host_memory(size_t bytes) {
  ESPALIER_ASSIGN(auto range, ReservedRange::reserve(bytes));
  return std::unique_ptr<BackendMemory>(std::make_unique<HostMemory>(std::move(range)));
}

}  // namespace espalier
