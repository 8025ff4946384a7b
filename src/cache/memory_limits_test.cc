#include "cache/memory_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace espalier {
namespace {

// A directory that looks like the root of a machine.
class FakeRoot : public ::testing::Test {
 protected:
  FakeRoot() : root_(::testing::TempDir() + "/memory_limits_" + ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
    write("/proc/meminfo", "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:    8000000 kB\n");
  }
  ~FakeRoot() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

constexpr size_t kMachine = size_t{8000000} * 1024;

TEST_F(FakeRoot, WithoutGroupsTheMachineDecides) {
  const auto limits = read_memory_limits(root_);
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->available_bytes, kMachine);
  EXPECT_EQ(limits->source, "MemAvailable");
}

TEST_F(FakeRoot, GroupLimitOfVersion2LessItsUseDecides) {
  write("/proc/self/cgroup", "0::/box\n");
  write("/sys/fs/cgroup/box/memory.max", "1000000\n");
  write("/sys/fs/cgroup/box/memory.current", "600000\n");
  write("/sys/fs/cgroup/box/memory.stat", "anon 300000\ninactive_file 200000\n");
  const auto limits = read_memory_limits(root_);
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->available_bytes, 600000u);  // page cache can be dropped
  EXPECT_THAT(limits->source, ::testing::HasSubstr("box/memory.max"));
}

TEST_F(FakeRoot, ParentGroupMayBeTighter) {
  write("/proc/self/cgroup", "0::/outer/inner\n");
  write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("/sys/fs/cgroup/outer/memory.max", "500000\n");
  EXPECT_EQ(read_memory_limits(root_)->available_bytes, 500000u);
}

TEST_F(FakeRoot, GroupLimitOfVersion1Decides) {
  write("/proc/self/cgroup", "5:cpu:/a\n4:hugetlb,memory:/docker/x\n");
  write("/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "2000000\n");
  write("/sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes", "1500000\n");
  EXPECT_EQ(read_memory_limits(root_)->available_bytes, 500000u);
}

TEST_F(FakeRoot, ContainerThatSeesItsGroupAsTheRootIsLimitedToo) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "700000\n");
  EXPECT_EQ(read_memory_limits(root_)->available_bytes, 700000u);
}

TEST_F(FakeRoot, GroupOverItsLimitLeavesNothing) {
  write("/proc/self/cgroup", "0::/box\n");
  write("/sys/fs/cgroup/box/memory.max", "1000\n");
  write("/sys/fs/cgroup/box/memory.current", "5000\n");
  EXPECT_EQ(read_memory_limits(root_)->available_bytes, 0u);
}

TEST_F(FakeRoot, MeminfoThatSaysNothingIsAnErrorThatNamesIt) {
  write("/proc/meminfo", "MemTotal: 5 kB\n");
  const auto limits = read_memory_limits(root_);
  ASSERT_FALSE(limits.ok());
  EXPECT_THAT(limits.error().message, ::testing::HasSubstr("/proc/meminfo"));
}

TEST(MemoryLimits, OfThisMachineAreRead) {
  const auto limits = read_memory_limits();
  ASSERT_TRUE(limits.ok()) << limits.error().message;
  EXPECT_GT(limits->available_bytes, size_t{1} << 20);
}

TEST(MemoryLimits, BudgetLeavesAReserveAndNeverWraps) {
  constexpr size_t kGiB = size_t{1} << 30;
  EXPECT_EQ(default_cache_budget(16 * kGiB, 0), 14 * kGiB);
  EXPECT_EQ(default_cache_budget(10 * kGiB, 2 * kGiB), 7 * kGiB);
  EXPECT_EQ(default_cache_budget(kGiB, 0), kGiB - (size_t{256} << 20));
  EXPECT_EQ(default_cache_budget(kGiB, 2 * kGiB), 0u);
  EXPECT_EQ(default_cache_budget(1000, 0), 0u);
}

}  // namespace
}  // namespace espalier
