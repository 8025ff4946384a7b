#include "backend/host_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace espalier {
namespace {

TEST(HostMemory, ReadsAsZeroWhenFirstUsed) {
  const auto memory = reserve_host_memory(3 << 20).value();
  EXPECT_EQ(memory->size_bytes(), size_t{3 << 20});
  EXPECT_TRUE(std::all_of(memory->data(), memory->data() + memory->size_bytes(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(HostMemory, DiscardZeroesExactlyItsBytes) {
  constexpr size_t kBytes = 5 * 4096;
  for (const auto& [offset, length] :
       {std::pair<size_t, size_t>{0, kBytes}, {100, 50}, {100, 9000}, {4096, 4096}, {4095, 2}, {4097, 4095}, {7, 0}}) {
    const auto memory = reserve_host_memory(kBytes).value();
    std::memset(memory->data(), 0xAB, kBytes);
    memory->discard(offset, length);
    for (size_t i = 0; i < kBytes; ++i) {
      const bool discarded = i >= offset && i - offset < length;
      ASSERT_EQ(memory->data()[i], discarded ? std::byte{0} : std::byte{0xAB})
          << "byte " << i << " after discard(" << offset << ", " << length << ")";
    }
  }
}

TEST(HostMemory, RefusesWhatNoAddressSpaceHolds) {
  const auto memory = reserve_host_memory(size_t{1} << 60);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, ErrorCode::kResourceExhausted);
}

TEST(HostMemory, NothingIsReservedForZeroBytes) { EXPECT_EQ(reserve_host_memory(0).value()->size_bytes(), 0u); }

}  // namespace
}  // namespace espalier
