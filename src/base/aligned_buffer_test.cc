#include "base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "base/result.h"

namespace espalier {
namespace {

class AlignedBufferOfSize : public ::testing::TestWithParam<size_t> {};

TEST_P(AlignedBufferOfSize, IsAlignedZeroedAndWritable) {
  const AlignedBuffer buffer(GetParam());
  ASSERT_EQ(buffer.size(), GetParam());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
  auto* bytes = static_cast<unsigned char*>(buffer.data());
  EXPECT_TRUE(std::all_of(bytes, bytes + buffer.size(), [](unsigned char byte) { return byte == 0; }));
  std::memset(bytes, 0xAB, buffer.size());
}

INSTANTIATE_TEST_SUITE_P(Sizes, AlignedBufferOfSize, ::testing::Values(1, 63, 64, 65, 4095, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20),
                         [](const auto& tested) { return "Bytes" + std::to_string(tested.param); });

TEST(AlignedBuffer, EmptyHoldsNothing) {
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
}

TEST(AlignedBuffer, MovingHandsTheMemoryOver) {
  for (const size_t size : {size_t{100}, size_t{2} << 20}) {
    AlignedBuffer first(size);
    void* const data = first.data();
    AlignedBuffer second(std::move(first));
    EXPECT_EQ(second.data(), data);
    EXPECT_EQ(first.data(), nullptr);
    AlignedBuffer third(7);
    third = std::move(second);
    EXPECT_EQ(third.data(), data);
    EXPECT_EQ(third.size(), size);
  }
}

TEST(ReservedRange, AddressesAloneTakeNoMemory) {
  const ReservedRange range = ReservedRange::reserve(size_t{1} << 37).value();
  range.data()[size_t{1} << 36] = std::byte{1};
  EXPECT_EQ(range.data()[(size_t{1} << 36) + 1], std::byte{0});
}

TEST(ReservedRange, MoreAddressesThanThereAreIsAnError) {
  const Result<ReservedRange> refused = ReservedRange::reserve(size_t{1} << 60);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(refused.error().message, "cannot reserve 1152921504606846976 bytes of address space: Cannot allocate memory");
}

TEST(ReservedRange, DiscardedPagesReadAsZeroAndTheirNeighboursStay) {
  constexpr size_t kPage = 4096;
  const ReservedRange range = ReservedRange::reserve(4 * kPage).value();
  std::memset(range.data(), 7, range.size());
  range.discard(kPage - 1, kPage + 2);  // covers page 1 and a byte on either side
  EXPECT_EQ(range.data()[kPage - 1], std::byte{7});
  EXPECT_EQ(range.data()[kPage], std::byte{0});
  EXPECT_EQ(range.data()[2 * kPage - 1], std::byte{0});
  EXPECT_EQ(range.data()[2 * kPage], std::byte{7});
  range.discard(10, 20);  // no whole page
  EXPECT_EQ(range.data()[10], std::byte{7});
}

TEST(ReservedRangeDeathTest, DiscardOutsideTheRangeIsOurBug) {
  const ReservedRange range = ReservedRange::reserve(4096).value();
  EXPECT_DEATH(range.discard(0, 4097), "internal error");
  EXPECT_DEATH(range.discard(4096, SIZE_MAX), "internal error");
}

TEST(ReservedRange, MovingHandsTheRangeOver) {
  ReservedRange first = ReservedRange::reserve(8192).value();
  std::byte* const data = first.data();
  const ReservedRange second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.size(), 0u);
}

}  // namespace
}  // namespace espalier
