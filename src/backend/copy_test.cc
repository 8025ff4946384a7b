#include "ops/copy.h"

#include "backend/op_test_support.h"

namespace espalier::testing {
namespace {

using CopyTest = OpTest;

TEST_P(CopyTest, MovesExactlyTheBytes) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{4096}, size_t{100001}}) {
    std::vector<std::byte> from(bytes + 1), to(bytes + 1, std::byte{0x55});
    for (size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
    ops().copy({.from = from.data(), .to = to.data(), .bytes = bytes});
    EXPECT_EQ(std::memcmp(from.data(), to.data(), bytes), 0);
    EXPECT_EQ(to[bytes], std::byte{0x55});
  }
}

ESPALIER_ON_ALL_BACKENDS(CopyTest);

}  // namespace
}  // namespace espalier::testing
