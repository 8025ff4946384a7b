#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpu_features.h"

namespace espalier {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEveryChunkExactlyOnce) {
  ThreadPool pool(GetParam());
  for (int64_t num_chunks : {0, 1, 2, 3, 7, 64, 1001}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(num_chunks));
    pool.parallel_for(num_chunks, [&](int64_t chunk, int thread) {
      ASSERT_GE(thread, 0);
      ASSERT_LT(thread, pool.num_threads());
      runs[static_cast<size_t>(chunk)].fetch_add(1);
    });
    for (const auto& count : runs) EXPECT_EQ(count.load(), 1);
  }
}

// Plain, unsynchronised memory: a missing happens-before edge between loops is a race that TSan reports and a wrong sum everywhere.
TEST_P(ThreadPoolTest, WritesOfOneLoopAreVisibleInTheNext) {
  ThreadPool pool(GetParam());
  constexpr int64_t kSize = 257;
  std::vector<int64_t> from(kSize, 1), to(kSize, 0);
  for (int round = 0; round < 2000; ++round) {
    pool.parallel_for(kSize, [&](int64_t i, int) { to[static_cast<size_t>(i)] = from[static_cast<size_t>(kSize - 1 - i)] + 1; });
    std::swap(from, to);
  }
  EXPECT_EQ(std::accumulate(from.begin(), from.end(), int64_t{0}), kSize * 2001);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 5), testing::PrintToStringParamName());

std::atomic<int> g_started{0};

TEST(ThreadPool, StartHookRunsOnEveryStartedThread) {
  g_started = 0;
  {
    ThreadPool pool(4, [] { g_started.fetch_add(1); });
  }
  EXPECT_EQ(g_started.load(), 3);
}

// One slow chunk at the head of a thread's range: the others must take the rest of it.
TEST(ThreadPool, SlowChunkDoesNotHoldUpItsRange) {
  ThreadPool pool(3);
  std::atomic<int64_t> done{0};
  constexpr int64_t kChunks = 100;
  pool.parallel_for(kChunks, [&](int64_t chunk, int) {
    if (chunk == 0) {
      while (done.load() != kChunks - 1) std::this_thread::yield();
    }
    done.fetch_add(1);
  });
  EXPECT_EQ(done.load(), kChunks);
}

std::atomic<bool> g_hold{false};

// Workers that are kept from coming, as on a machine that has other things to do.
TEST(ThreadPool, NobodyWaitsForAThreadThatHasNotCome) {
  g_hold = true;
  ThreadPool pool(3, [] {
    while (g_hold) std::this_thread::yield();
  });
  int64_t sum = 0;
  for (int round = 0; round < 100; ++round) {
    pool.parallel_for(8, [&](int64_t chunk, int thread) {
      EXPECT_EQ(thread, 0);
      sum += chunk;
    });
  }
  EXPECT_EQ(sum, 100 * 28);
  g_hold = false;
  std::atomic<int> others{0};
  while (others == 0) pool.parallel_for(64, [&](int64_t, int thread) { others += thread != 0 ? 1 : 0; });
}

// Loops so short that workers come late to many of them.
TEST(ThreadPool, LateThreadsDoNoHarm) {
  ThreadPool pool(4);
  std::vector<int64_t> sums(4, 0);
  int64_t total = 0;
  for (int round = 0; round < 20000; ++round) {
    pool.parallel_for(2, [&](int64_t, int thread) { ++sums[static_cast<size_t>(thread)]; });
    total += 2;
  }
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), total);
}

TEST(CpuFeatures, CoresAreWithinTheAffinityMask) {
  EXPECT_GE(physical_cores(), 1);
  EXPECT_LE(physical_cores(), available_cpus());
}

TEST(CpuFeatures, WiderSetsImplyNarrowerOnes) {
  const CpuFeatures& features = cpu_features();
  EXPECT_FALSE(features.processor.empty());
  EXPECT_TRUE(features.avx2 || !features.avx512);
  EXPECT_TRUE(features.avx512 || !features.amx_bf16);
}

}  // namespace
}  // namespace espalier
