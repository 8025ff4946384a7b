// A few threads that take jobs in order: what is too long for the thread that serves sockets (parsing, rendering, tokenising).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace espalier {

class WorkQueue {
 public:
  explicit WorkQueue(int num_threads);
  ~WorkQueue();  // finishes the jobs that run, drops those that wait
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // From every thread. Jobs must not throw.
  void add(std::function<void()> job);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace espalier
