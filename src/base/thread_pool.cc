#include "base/thread_pool.h"

#include <chrono>

#include "base/cpu_features.h"
#include "base/result.h"

namespace espalier {
namespace {

// A loop of the next op usually follows within microseconds; going to sleep and waking up costs 50 of them and more on a virtual
// machine. Sanitizers and oversubscribed machines never spin: there the spinning thread would hold the processor that the work needs.
bool may_spin(int num_threads) {
#ifdef ESPALIER_SANITIZED
  (void)num_threads;
  return false;
#else
  return num_threads <= available_cpus();
#endif
}

// Several wake-ups long: if the caller once sleeps, its workers must still be awake when it returns with the next loop. With less, each
// side falls asleep while waiting for the other to wake, op after op.
constexpr std::chrono::microseconds kSpin{300};
constexpr std::chrono::microseconds kYieldAfter{5};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

// Waits until `word` no longer holds `old`. Yielding matters on a busy machine: the thread waited for may be queued behind this one.
void wait_while_equal(std::atomic<uint32_t>& word, uint32_t old, bool spin) {
  if (spin) {
    const auto start = std::chrono::steady_clock::now();
    for (auto waited = start - start; waited < kSpin; waited = std::chrono::steady_clock::now() - start) {
      for (int i = 0; i < 32; ++i) {
        if (word.load(std::memory_order_acquire) != old) return;
        pause();
      }
      if (waited > kYieldAfter) std::this_thread::yield();
    }
  }
  while (word.load(std::memory_order_acquire) == old) word.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int num_threads, void (*on_thread_start)())
    : num_threads_(num_threads),
      spins_(may_spin(num_threads)),
      on_thread_start_(on_thread_start),
      ranges_(new Range[static_cast<size_t>(num_threads)]) {
  ESPALIER_CHECK(num_threads >= 1);
  threads_.reserve(static_cast<size_t>(num_threads - 1));
  for (int thread = 1; thread < num_threads; ++thread) threads_.emplace_back([this, thread] { worker_loop(thread); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);  // published by the epoch; a worker still late for an older one may see it too
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run(int64_t num_chunks, ChunkFn fn, const void* context) {
  for (int t = 0; t < num_threads_; ++t) {
    ranges_[static_cast<size_t>(t)].next.store(num_chunks * t / num_threads_, std::memory_order_relaxed);
    ranges_[static_cast<size_t>(t)].end = num_chunks * (t + 1) / num_threads_;
  }
  fn_ = fn;
  context_ = context;
  inside_.store(0, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  work(0);
  // Every chunk is taken: whoever has not joined by now is not needed.
  for (uint32_t inside = inside_.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed; inside != kClosed;
       inside = inside_.load(std::memory_order_acquire)) {
    wait_while_equal(inside_, inside, spins_);
  }
}

bool ThreadPool::join() {
  uint32_t inside = inside_.load(std::memory_order_relaxed);
  while ((inside & kClosed) == 0) {
    if (inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire, std::memory_order_relaxed)) return true;
  }
  return false;
}

void ThreadPool::work(int thread) noexcept {
  for (int i = 0; i < num_threads_; ++i) {
    Range& range = ranges_[static_cast<size_t>((thread + i) % num_threads_)];
    // The plain load first keeps finished ranges from being written (and their counters from running away).
    while (range.next.load(std::memory_order_relaxed) < range.end) {
      const int64_t chunk = range.next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= range.end) break;
      fn_(context_, chunk, thread);
    }
  }
}

void ThreadPool::worker_loop(int thread) {
  if (on_thread_start_ != nullptr) on_thread_start_();
  uint32_t seen = 0;
  while (true) {
    wait_while_equal(epoch_, seen, spins_);
    seen = epoch_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!join()) continue;  // that loop is over
    work(thread);
    if (inside_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | 1)) inside_.notify_one();
  }
}

}  // namespace espalier
