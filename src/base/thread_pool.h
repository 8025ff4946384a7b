// A fixed set of threads for data-parallel loops. The caller of parallel_for takes part; nothing is allocated per call.
// One loop at a time, started from one thread; loops do not nest.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace espalier {

class ThreadPool {
 public:
  // num_threads counts the caller: 1 starts no thread. `on_thread_start` runs once on every started thread (float mode, names).
  explicit ThreadPool(int num_threads, void (*on_thread_start)() = nullptr);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // fn(chunk, thread) for every chunk in [0, num_chunks), each exactly once, thread in [0, num_threads()). Returns when all are done;
  // what the chunks wrote is visible to the caller. Each thread owns a contiguous range of chunks and, when done, helps the others,
  // so a result must not depend on which thread computed it; nobody waits for a thread that has not come yet, which on a busy machine may
  // take milliseconds. An exception out of fn ends the program: the others still work on its data.
  template <typename Fn>
  void parallel_for(int64_t num_chunks, const Fn& fn) {
    if (num_threads_ == 1 || num_chunks <= 1) {
      for (int64_t chunk = 0; chunk < num_chunks; ++chunk) fn(chunk, 0);
      return;
    }
    run(
        num_chunks, [](const void* context, int64_t chunk, int thread) { (*static_cast<const Fn*>(context))(chunk, thread); }, &fn);
  }

 private:
  using ChunkFn = void (*)(const void* context, int64_t chunk, int thread);
  struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void run(int64_t num_chunks, ChunkFn fn, const void* context);
  void work(int thread) noexcept;
  bool join();
  void worker_loop(int thread);

  const int num_threads_;
  const bool spins_;
  void (*const on_thread_start_)();
  std::unique_ptr<Range[]> ranges_;
  ChunkFn fn_ = nullptr;
  const void* context_ = nullptr;
  std::atomic<bool> stopping_{false};
  // The workers in the current loop, and whether more may join it. Only while it is closed and nobody is in it does the caller write what
  // workers read.
  static constexpr uint32_t kClosed = uint32_t{1} << 31;
  alignas(64) std::atomic<uint32_t> epoch_{0};  // bumped by the caller: a loop is ready (or the pool stops)
  alignas(64) std::atomic<uint32_t> inside_{kClosed};
  std::vector<std::thread> threads_;
};

}  // namespace espalier
